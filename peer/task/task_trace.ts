/**
 * What one task tells a trace: a span for each request, and below it one for
 * each read of the origin and each piece asked of a neighbour. Lies around the
 * ports that the engine acts through, so that the engine knows nothing of it
 * and pays nothing where nobody traces.
 *
 * Work that several requests share is told below the oldest of them.
 */
import type { Attributes, Span, Tracer } from "../core/telemetry.ts";
import { traced } from "../core/telemetry.ts";
import { traceSource } from "../source/traced_source.ts";
import type { PieceClient } from "../transfer/piece_transfer.ts";
import type { EngineDeps } from "./engine_deps.ts";
import type { TaskRequest, TaskRun } from "./task.ts";

export class TaskTrace {
  /** Requests under way, oldest first; the last one that ended stays, for what comes late. */
  readonly #spans = new Set<Span>();
  #last: Span | undefined;

  constructor(private readonly tracer: Tracer, private readonly taskId: string) {}

  /** The request as the engine gets it: what it tells others belongs to this host's span. */
  begin(request: TaskRequest): { request: TaskRequest; follow: <R extends TaskRun>(run: R) => R } {
    const span = this.tracer.start("task", {
      parent: request.traceparent,
      kind: "server",
      attributes: {
        "lacewing.task_id": this.taskId,
        "url.full": request.url,
        "lacewing.tag": request.tag === "" ? undefined : request.tag,
      },
    });
    this.#spans.add(span);
    const { traceparent } = span;
    return {
      request: traceparent === undefined ? request : { ...request, traceparent },
      follow: (run) => {
        run.finished.then(
          ({ stats }) => this.#end(span, undefined, statsOf(stats)),
          (error) => this.#end(span, error),
        );
        return run;
      },
    };
  }

  /** The same ports, telling of what goes through them. */
  wrap(deps: EngineDeps): EngineDeps {
    const source = traceSource(deps.source, this.tracer, {
      parent: () => this.#parent,
      attributes: { "lacewing.task_id": this.taskId },
    });
    return { ...deps, source, client: this.#client(deps.client) };
  }

  #end(span: Span, error: unknown, attributes: Attributes = {}): void {
    span.set(attributes);
    span.end(error);
    this.#spans.delete(span);
    this.#last = span;
  }

  get #parent(): string | undefined {
    const [oldest = this.#last] = this.#spans;
    return oldest?.traceparent;
  }

  #client(client: PieceClient): PieceClient {
    return {
      fetch: (request, sink, options) => {
        const span = this.tracer.start("piece.fetch", {
          parent: this.#parent,
          kind: "client",
          attributes: {
            "lacewing.task_id": this.taskId,
            "lacewing.piece": request.number,
            "lacewing.length": request.length,
            "server.address": request.address,
          },
        });
        const { traceparent } = span;
        return traced(span, () => client.fetch({ ...request, traceparent }, sink, options));
      },
      [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
    };
  }
}

function statsOf({ length, from_local, from_peers, from_source, peers }: {
  length: number;
  from_local: number;
  from_peers: number;
  from_source: number;
  peers: number;
}): Attributes {
  return {
    "lacewing.length": length,
    "lacewing.from_local": from_local,
    "lacewing.from_peers": from_peers,
    "lacewing.from_source": from_source,
    "lacewing.peers": peers,
  };
}
