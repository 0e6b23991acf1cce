/**
 * Gathers who gained and lost which neighbour during one event, so that each
 * host hears of it in one message, and of nothing that cancelled out: a host
 * that lost its last neighbour for a moment would give up.
 */

export interface LinkChange {
  readonly hostId: string;
  /** Ascending. */
  readonly add: readonly string[];
  readonly remove: readonly string[];
  /** Whether it is to hear anew who brings pieces over to its idc. */
  readonly carriers?: true;
}

export class LinkChanges {
  /** Host → neighbour → whether it was gained (else lost). */
  readonly #changes = new Map<string, Map<string, boolean>>();
  readonly #carriers = new Set<string>();

  /** From now on `hostId` knows `neighbourId` (or does so no longer). */
  note(hostId: string, neighbourId: string, gained: boolean): void {
    let changes = this.#changes.get(hostId);
    if (changes === undefined) this.#changes.set(hostId, changes = new Map());
    const before = changes.get(neighbourId);
    if (before === undefined) changes.set(neighbourId, gained);
    else if (before !== gained) changes.delete(neighbourId);
  }

  /** From now on others bring pieces over to the host's idc. */
  noteCarriers(hostId: string): void {
    this.#carriers.add(hostId);
  }

  /** What concerns this host need not be told: it is gone, or hears all of its neighbours anyway. */
  forget(hostId: string): void {
    this.#changes.delete(hostId);
    this.#carriers.delete(hostId);
  }

  /** All changes since the last call, by host in ascending order. */
  take(): LinkChange[] {
    if (this.#changes.size + this.#carriers.size === 0) return [];
    const result: LinkChange[] = [];
    for (const hostId of [...new Set([...this.#changes.keys(), ...this.#carriers])].sort()) {
      const changes = [...this.#changes.get(hostId) ?? []].sort(([a], [b]) => a < b ? -1 : 1);
      const carriers = this.#carriers.has(hostId);
      if (changes.length === 0 && !carriers) continue;
      const ids = (gained: boolean) => changes.filter((change) => change[1] === gained).map(([id]) => id);
      result.push({ hostId, add: ids(true), remove: ids(false), ...(carriers ? { carriers } : {}) });
    }
    this.#changes.clear();
    this.#carriers.clear();
    return result;
  }
}
