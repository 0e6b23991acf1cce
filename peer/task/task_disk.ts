/**
 * What one task has on this host's disk while an engine works on it: at most
 * one generation, open. Tells the upload side when a generation goes, and the
 * scheduler's side that something changed.
 */
import type { TaskMeta, TaskSpec } from "../core/wire/scheduler.ts";
import type { StoredTask } from "../storage/piece_store.ts";
import type { EngineDeps } from "./engine_deps.ts";

export class TaskDisk {
  #stored: StoredTask | null = null;

  constructor(
    private readonly deps: Pick<EngineDeps, "store" | "events" | "onStored">,
    private readonly spec: TaskSpec,
  ) {}

  /** The open generation, or null. */
  get stored(): StoredTask | null {
    return this.#stored;
  }

  /** Opens what is there. */
  async open(): Promise<StoredTask | null> {
    this.#stored = await this.deps.store.open(this.spec.task_id);
    return this.#stored;
  }

  /** The generation on disk if it is this one, else an empty one in its place. */
  async take(meta: TaskMeta): Promise<StoredTask> {
    if (this.#stored !== null && this.#stored.info.meta.generation !== meta.generation) await this.drop();
    this.#stored ??= await this.deps.store.create(this.spec, meta);
    return this.#stored;
  }

  /** Removes it with all its bytes. */
  async drop(): Promise<void> {
    const generation = this.#stored?.info.meta.generation;
    await this.#stored?.[Symbol.asyncDispose]();
    this.#stored = null;
    await this.deps.store.remove(this.spec.task_id);
    if (generation !== undefined) this.deps.events.gone(this.spec.task_id, generation);
    this.deps.onStored(this.spec.task_id);
  }

  /** Closes it; what is on disk stays. */
  async close(): Promise<void> {
    await this.#stored?.[Symbol.asyncDispose]();
    this.#stored = null;
    this.deps.onStored(this.spec.task_id);
  }
}
