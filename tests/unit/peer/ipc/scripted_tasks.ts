/**
 * A `TaskStarter` whose runs are moved by the test: bytes arrive, progress is
 * told, the end comes when the test says so.
 */
import type { DownloadStats } from "../../../../peer/core/wire/ipc.ts";
import type { TaskProgress, TaskRequest, TaskResult, TaskRun, TaskStarter } from "../../../../peer/task/task.ts";

export class ScriptedRun implements TaskRun {
  readonly taskId = "ab".repeat(32);
  readonly finished: Promise<TaskResult>;
  readonly #end = Promise.withResolvers<TaskResult>();
  readonly #listeners = new Set<() => void>();
  readonly #chunks: Uint8Array[] = [];
  #arrived = Promise.withResolvers<void>();
  #isComplete = false;
  #done = 0;
  isDisposed = false;
  /** Chunks that were handed out. */
  readCount = 0;

  constructor(readonly request: TaskRequest, readonly signal: AbortSignal) {
    this.finished = this.#end.promise;
    this.finished.catch(() => {});
    signal.addEventListener("abort", () => this.fail(signal.reason), { once: true });
  }

  arrive(bytes: Uint8Array): void {
    this.#chunks.push(bytes);
    this.#done += bytes.length;
    this.#wake();
  }

  tellProgress(): void {
    for (const listener of this.#listeners) listener();
  }

  finish(path = "/store/file"): void {
    this.#isComplete = true;
    this.#end.resolve({ path, stats: statsOf(this.#done) });
    this.#wake();
  }

  fail(reason: unknown): void {
    this.#end.reject(reason);
    this.#wake();
  }

  progress(): TaskProgress {
    return { total: 1000, done: this.#done, fromLocal: 0, fromPeers: this.#done, fromSource: 0, peers: 2 };
  }

  onProgress(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async *read(): AsyncIterable<Uint8Array> {
    const buffer = new Uint8Array(1024 * 1024);
    for (let index = 0;;) {
      const chunk = this.#chunks[index];
      if (chunk !== undefined) {
        index += 1;
        this.readCount = index;
        // One buffer for all, as a run may do: whoever keeps a view reads rubbish.
        buffer.set(chunk);
        yield buffer.subarray(0, chunk.length);
      } else if (this.#isComplete) {
        await this.finished;
        return;
      } else await Promise.race([this.#arrived.promise, this.finished]);
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.isDisposed = true;
    return Promise.resolve();
  }

  #wake(): void {
    this.#arrived.resolve();
    this.#arrived = Promise.withResolvers<void>();
  }
}

export class ScriptedTasks implements TaskStarter {
  readonly runs: ScriptedRun[] = [];
  /** Called with each new run. */
  onStart: (run: ScriptedRun) => void = () => {};

  start(request: TaskRequest, { signal }: { signal: AbortSignal }): TaskRun {
    const run = new ScriptedRun(request, signal);
    this.runs.push(run);
    this.onStart(run);
    return run;
  }
}

export function statsOf(length: number): DownloadStats {
  return {
    task_id: "ab".repeat(32),
    content_length: length,
    offset: 0,
    length,
    from_local: 0,
    from_peers: length,
    from_source: 0,
    peers: 2,
    verified: null,
    parents: [["host-a", length]],
  };
}

export const STATUS = { version: "0.1.0", host_id: "host", tasks: 3, schedulers: 1, pid: 42 };

/** A fresh folder that is removed at the end, with the socket's path in it. */
export async function socketFolder(): Promise<AsyncDisposable & { folder: string; path: string }> {
  const folder = await Deno.makeTempDir();
  return {
    folder,
    path: `${folder}/run/daemon.sock`,
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}

/** Leaves a socket at `path` that nobody serves, as a killed daemon does. */
export function leaveSocket(path: string): void {
  const listener = Deno.listen({ transport: "unix", path: `${path}.listening` });
  Deno.linkSync(`${path}.listening`, path);
  listener.close();
}

/** Resolves as soon as `condition` holds, looking once a turn of the event loop. */
export async function until(condition: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + 10_000;
  while (!condition()) {
    if (performance.now() > deadlineMs) throw new Error(`Never came true: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
