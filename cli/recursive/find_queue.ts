/**
 * What a walk has found and nobody has taken yet, first in, first out. Bounded:
 * the walk waits when the takers are far behind.
 */
export class FindQueue<T> {
  #items: T[] = [];
  #isClosed = false;
  #error: unknown = null;
  readonly #takers: (() => void)[] = [];
  #giver: (() => void) | null = null;

  constructor(private readonly countMax: number) {}

  get count(): number {
    return this.#items.length;
  }

  /** Whether nothing more will come. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Resolves when there is room for the next one. One giver at a time. */
  async put(item: T): Promise<void> {
    this.#items.push(item);
    this.#takers.shift()?.();
    while (this.#items.length >= this.countMax && !this.#isClosed) {
      await new Promise<void>((resolve) => this.#giver = resolve);
    }
  }

  /** @returns undefined at the end; rejects with the error that the giver ended with */
  async take(): Promise<T | undefined> {
    while (true) {
      const item = this.#items.shift();
      this.#giver?.();
      this.#giver = null;
      if (item !== undefined) return item;
      if (this.#error !== null) throw this.#error;
      if (this.#isClosed) return undefined;
      await new Promise<void>((resolve) => this.#takers.push(resolve));
    }
  }

  /** Nothing more will come. */
  close(error: unknown = null): void {
    this.#isClosed = true;
    this.#error = error;
    this.#giver?.();
    for (const wake of this.#takers.splice(0)) wake();
  }
}
