/**
 * Decides which tasks leave the store. Pure: the store says what it holds and
 * how full the disk is, and removes what is answered.
 *
 * First goes what nobody used for the expire time, then the least recently
 * used until both thresholds hold. A task that is open is never named.
 */

/** What matters of a stored task. */
export interface Evictable {
  readonly taskId: string;
  /** Wall-clock milliseconds. */
  readonly lastUsedAtMs: number;
  readonly storedBytes: number;
  /** Whether somebody reads or writes it now. */
  readonly open: boolean;
}

export interface EvictionPolicy {
  /** Idle time after which a task goes; 0 keeps it until space is needed. */
  readonly taskExpireTimeMs: number;
  /** Bytes that the store may hold; 0 is no bound. */
  readonly diskGCThresholdBytes: number;
  /** Part of the file system that may be in use, by anyone, 1 to 100; 0 is no bound. */
  readonly diskGCThresholdPercent: number;
}

export interface DiskState {
  readonly nowMs: number;
  readonly freeBytes: number;
  readonly totalBytes: number;
}

/** @returns ids to remove, expired ones first, then least recently used first */
export function chooseEvictions(tasks: readonly Evictable[], policy: EvictionPolicy, disk: DiskState): string[] {
  const idle = tasks.filter((task) => !task.open).sort((a, b) => a.lastUsedAtMs - b.lastUsedAtMs);
  const storedBytes = tasks.reduce((sum, task) => sum + task.storedBytes, 0);
  let excessBytes = Math.max(storedExcess(storedBytes, policy), diskExcess(disk, policy));
  const chosen: string[] = [];
  // `idle` is in order of last use, so that every expired task comes before every other.
  for (const task of idle) {
    if (!isExpired(task, policy, disk) && excessBytes <= 0) break;
    chosen.push(task.taskId);
    excessBytes -= task.storedBytes;
  }
  return chosen;
}

function isExpired(task: Evictable, { taskExpireTimeMs }: EvictionPolicy, { nowMs }: DiskState): boolean {
  return taskExpireTimeMs > 0 && nowMs - task.lastUsedAtMs > taskExpireTimeMs;
}

function storedExcess(storedBytes: number, { diskGCThresholdBytes }: EvictionPolicy): number {
  return diskGCThresholdBytes > 0 ? storedBytes - diskGCThresholdBytes : 0;
}

function diskExcess({ freeBytes, totalBytes }: DiskState, { diskGCThresholdPercent }: EvictionPolicy): number {
  if (diskGCThresholdPercent <= 0) return 0;
  return totalBytes - freeBytes - (totalBytes * diskGCThresholdPercent) / 100;
}
