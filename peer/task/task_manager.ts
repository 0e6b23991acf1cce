/**
 * The one door to the engine (client, orders of the scheduler, proxy): one
 * engine per task, shared by every request for it.
 */
import { LacewingError } from "../core/errors.ts";
import { formatDigest } from "../core/digest.ts";
import { taskId } from "../core/task_id.ts";
import { noTracer } from "../core/telemetry.ts";
import type { TaskSpec } from "../core/wire/scheduler.ts";
import { Engine } from "./engine.ts";
import type { EngineConfig, EngineDeps, TaskManagerDeps } from "./engine_deps.ts";
import { RequestGate } from "./request_gate.ts";
import type { StreamingRun, TaskRequest, TaskStarter } from "./task.ts";
import { TaskTrace } from "./task_trace.ts";

export class TaskManager implements TaskStarter, AsyncDisposable {
  readonly #engines = new Map<string, Engine>();
  /** Empty where nobody traces. */
  readonly #traces = new WeakMap<Engine, TaskTrace>();
  private readonly deps: EngineDeps;
  #config: EngineConfig;
  #stopped = false;

  constructor(deps: TaskManagerDeps, config: EngineConfig) {
    this.deps = { ...deps, gate: new RequestGate(config.concurrentPieceCount) };
    this.#config = config;
  }

  /** Tasks that are being worked on or shared. */
  get activeCount(): number {
    return this.#engines.size;
  }

  /** Tasks that a request waits for. */
  get busyCount(): number {
    return [...this.#engines.values()].filter((engine) => engine.isBusy).length;
  }

  /** Changes the limit of one task, those under way too; bytes per second, 0 is none. */
  setPerTaskRate(bytesPerSecond: number): void {
    this.#config = { ...this.#config, perTaskRateLimit: bytesPerSecond };
    for (const engine of this.#engines.values()) engine.setPerTaskRate(bytesPerSecond);
  }

  start(asked: TaskRequest, { signal }: { signal: AbortSignal }): StreamingRun {
    const request = withoutUserInfo(asked);
    if (this.#stopped) throw new LacewingError("unavailable", "Cannot start a task: the daemon is stopping");
    const id = taskId(request.url, { tag: request.tag, filter: request.filter });
    const known = this.#engines.get(id);
    if (known !== undefined && known.closed === null) return this.#add(known, request, signal);
    const spec: TaskSpec = {
      task_id: id,
      url: request.url,
      tag: request.tag,
      filter: request.filter,
      ...(request.digest === null || request.range !== null ? {} : { digest: formatDigest(request.digest) }),
    };
    const { tracer = noTracer } = this.deps;
    const trace = tracer.isOn ? new TaskTrace(tracer, id) : null;
    const engine = new Engine(trace?.wrap(this.deps) ?? this.deps, spec, this.#config, {
      after: known?.closed ?? undefined,
      onClosed: () => {
        if (this.#engines.get(id) === engine) this.#engines.delete(id);
      },
    });
    this.#engines.set(id, engine);
    if (trace !== null) this.#traces.set(engine, trace);
    return this.#add(engine, request, signal);
  }

  #add(engine: Engine, request: TaskRequest, signal: AbortSignal): StreamingRun {
    const traced = this.#traces.get(engine)?.begin(request);
    if (traced === undefined) return engine.add(request, signal);
    return traced.follow(engine.add(traced.request, signal));
  }

  /** Ends work on a task and removes it from the disk. */
  async drop(id: string): Promise<void> {
    await this.#engines.get(id)?.close(new LacewingError("canceled", "The task was dropped by order of the scheduler"));
    const stored = await this.deps.store.open(id);
    const generation = stored?.info.meta.generation;
    await stored?.[Symbol.asyncDispose]();
    await this.deps.store.remove(id);
    if (generation !== undefined) this.deps.events.gone(id, generation);
    this.deps.onStored(id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    const reason = new LacewingError("unavailable", "The daemon is stopping");
    await Promise.all([...this.#engines.values()].map((engine) => engine.close(reason)));
  }
}

/** User and password of a URL are credentials: a header for the origin, never part of what schedulers and other hosts are told. */
function withoutUserInfo(request: TaskRequest): TaskRequest {
  const url = URL.parse(request.url);
  if (url === null || (url.username === "" && url.password === "")) return request;
  const bytes = new TextEncoder().encode(`${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`);
  const given = request.headers.some(([name]) => name.toLowerCase() === "authorization");
  const own: [string, string] = ["authorization", `Basic ${btoa(String.fromCharCode(...bytes))}`];
  [url.username, url.password] = ["", ""];
  return { ...request, url: url.href, headers: given ? request.headers : [...request.headers, own] };
}
