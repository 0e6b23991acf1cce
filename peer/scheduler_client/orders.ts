/**
 * Carries out a scheduler's orders: preheat a task onto this host, drop one.
 * Progress is reported at most four times a second, and the end always.
 */
import { toWireError } from "../core/errors.ts";
import { parseDigest } from "../core/digest.ts";
import type { Logger } from "../core/log.ts";
import type { HostMessage, OrderTask, SchedulerMessage } from "../core/wire/scheduler.ts";
import type { TaskProgress, TaskRun, TaskStarter } from "../task/task.ts";

const REPORT_INTERVAL_MS = 250;

export interface OrdersDeps {
  readonly tasks: TaskStarter & { drop(taskId: string): Promise<void> };
  readonly log: Logger;
}

type Send = (message: HostMessage) => void;

export class Orders implements AsyncDisposable {
  readonly #running = new Map<string, { controller: AbortController; done: Promise<void> }>();

  constructor(private readonly deps: OrdersDeps) {}

  /** Preheats under way. */
  get activeCount(): number {
    return this.#running.size;
  }

  handle(message: Extract<SchedulerMessage, { type: "order" | "cancel_order" }>, send: Send): void {
    if (message.type === "cancel_order") {
      this.#running.get(message.order_id)?.controller.abort(new DOMException("The order was cancelled", "AbortError"));
      return;
    }
    if (this.#running.has(message.order_id)) return;
    const controller = new AbortController();
    const work = message.kind === "drop"
      ? this.#drop(message.task.task_id)
      : this.#preheat(message.order_id, message.task, { send, signal: controller.signal });
    const done = work.catch((error) => this.deps.log.warn("order failed", { order_id: message.order_id, error }))
      .finally(() => this.#running.delete(message.order_id));
    this.#running.set(message.order_id, { controller, done });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const running = [...this.#running.values()];
    for (const { controller } of running) controller.abort(new DOMException("The daemon is stopping", "AbortError"));
    await Promise.all(running.map(({ done }) => done));
  }

  async #drop(taskId: string): Promise<void> {
    await this.deps.tasks.drop(taskId);
  }

  async #preheat(
    orderId: string,
    task: OrderTask,
    { send, signal }: { send: Send; signal: AbortSignal },
  ): Promise<void> {
    const report = (state: "running" | "success" | "failure", progress: TaskProgress | null, error?: unknown) =>
      send({
        type: "order_progress",
        order_id: orderId,
        state,
        content_length: progress?.total ?? null,
        done: progress?.done ?? 0,
        from_source: progress?.fromSource ?? 0,
        from_peers: progress?.fromPeers ?? 0,
        ...(error === undefined ? {} : { error: toWireError(error) }),
      });
    let run: TaskRun | null = null;
    report("running", null);
    const timer = setInterval(() => report("running", run?.progress() ?? null), REPORT_INTERVAL_MS);
    try {
      run = this.deps.tasks.start({
        url: task.url,
        headers: Object.entries(task.headers),
        tag: task.tag,
        filter: task.filter,
        digest: task.digest === undefined ? null : parseDigest(task.digest),
        range: null,
        disableBackSource: false,
        rateLimitBytesPerSecond: 0,
      }, { signal });
      await run.finished;
      report("success", run.progress());
    } catch (error) {
      report("failure", run?.progress() ?? null, error);
    } finally {
      clearInterval(timer);
      await run?.[Symbol.asyncDispose]();
    }
  }
}
