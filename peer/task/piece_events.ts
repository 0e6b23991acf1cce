/**
 * Tells the upload side which pieces become valid and which tasks go, so that
 * neighbours hear of a piece the moment it may be served, and whether it is
 * news to them at all.
 */

/** Called with a piece that became valid, or null when the generation is gone. */
export type PieceListener = (piece: number | null) => void;

export class PieceEvents {
  readonly #listeners = new Map<string, Set<PieceListener>>();
  readonly #known = new Map<string, (hostId: string, piece: number) => boolean>();
  readonly #openListeners = new Set<(taskId: string, generation: string) => void>();

  /** @returns the way to stop listening */
  watch(taskId: string, generation: string, listener: PieceListener): () => void {
    const key = `${taskId}/${generation}`;
    const listeners = this.#listeners.get(key) ?? new Set();
    listeners.add(listener);
    this.#listeners.set(key, listeners);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(key) === listeners) this.#listeners.delete(key);
    };
  }

  /** Hears of each generation that this host begins or takes up again. */
  onOpened(listener: (taskId: string, generation: string) => void): void {
    this.#openListeners.add(listener);
  }

  opened(taskId: string, generation: string): void {
    for (const listener of this.#openListeners) listener(taskId, generation);
  }

  held(taskId: string, generation: string, piece: number): void {
    for (const listener of this.#listeners.get(`${taskId}/${generation}`) ?? []) listener(piece);
  }

  /**
   * Learns who can tell which pieces the neighbours have.
   *
   * @returns the way to forget it
   */
  knows(taskId: string, generation: string, isKnownTo: (hostId: string, piece: number) => boolean): () => void {
    const key = `${taskId}/${generation}`;
    this.#known.set(key, isKnownTo);
    return () => {
      if (this.#known.get(key) === isKnownTo) this.#known.delete(key);
    };
  }

  /** Whether a neighbour has told that it holds the piece. */
  isKnownTo(taskId: string, generation: string, { hostId, piece }: { hostId: string; piece: number }): boolean {
    return this.#known.get(`${taskId}/${generation}`)?.(hostId, piece) === true;
  }

  gone(taskId: string, generation: string): void {
    for (const listener of [...this.#listeners.get(`${taskId}/${generation}`) ?? []]) listener(null);
  }
}
