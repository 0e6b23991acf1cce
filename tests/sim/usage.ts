/** What this process has taken of the machine so far. */
import process from "node:process";

export interface Usage {
  /** User and system, of all threads: collecting garbage counts, on whatever thread. */
  readonly cpuSeconds: number;
  /** Most memory that it has held; null where the system does not tell. */
  readonly rssMaxBytes: number | null;
}

export function usage(): Usage {
  const { user, system } = process.cpuUsage();
  return { cpuSeconds: (user + system) / 1e6, rssMaxBytes: rssMaxBytes() };
}

function rssMaxBytes(): number | null {
  if (Deno.build.os !== "linux") return null;
  const kib = /^VmHWM:\s+(\d+) kB$/m.exec(Deno.readTextFileSync("/proc/self/status"))?.[1];
  return kib === undefined ? null : Number(kib) * 1024;
}
