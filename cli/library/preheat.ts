/** Preheats from a program: posts the job to a manager and waits for its outcome over the HTTP API. */
import { isErrorCode, LacewingError } from "../../peer/core/errors.ts";
import { systemClock } from "../../peer/core/clock.ts";

/** Arguments of a preheat job, as `args` of `POST /api/v1/jobs`. */
export interface PreheatArgs {
  readonly type: "image" | "file";
  /** A manifest URL for an image, any URL for a file. */
  readonly url: string;
  /** More files, up to 1,000. */
  readonly urls?: readonly string[];
  readonly filter?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly tag?: string;
  readonly platform?: string | readonly string[];
  readonly username?: string;
  readonly password?: string;
  readonly scope?: "single_seed_peer" | "all_seed_peers" | "all_peers";
  readonly scheduler_cluster_ids?: readonly number[];
  /** Seconds, default 3600. */
  readonly timeout?: number;
}

/** The job as the API shows it; `result` tells each task and host. */
export interface PreheatJob {
  readonly id: number;
  readonly task_id: string;
  readonly status: "PENDING" | "SUCCESS" | "FAILURE" | "CANCELED";
  readonly result: Record<string, unknown> | null;
}

export interface PreheatOptions {
  /** Base URL of the manager. */
  readonly manager: string;
  /** Access token, where the manager wants one. */
  readonly token?: string;
  /** Milliseconds between two looks at the job; default 200. */
  readonly pollMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * Puts a content on hosts and waits until it is there.
 *
 * @returns the job with status `SUCCESS`
 * @throws {LacewingError} the manager's code when it refuses the job, `source_failed` when the job ends otherwise.
 * @example
 * ```ts
 * import { preheat, startManager, startPeer } from "./mod.ts";
 *
 * await using origin = Deno.serve({ port: 0, onListen() {} }, () => new Response("hello"));
 * const folder = await Deno.makeTempDir();
 * await using manager = await startManager(`${folder}/manager`, { config: { server: { listen: "127.0.0.1:0" } } });
 * await using _peer = await startPeer(`${folder}/peer`, {
 *   config: {
 *     scheduler: { manager: { addr: manager.http } },
 *     upload: { tcpListen: { port: 0 } },
 *     health: { tcpListen: { port: 0 } },
 *   },
 * });
 *
 * const url = `http://127.0.0.1:${origin.addr.port}/greeting`;
 * const job = await preheat({ type: "file", url }, { manager: manager.http });
 * console.log(job.status); // SUCCESS
 * ```
 */
export async function preheat(args: PreheatArgs, options: PreheatOptions): Promise<PreheatJob> {
  let job = await call(options, "/api/v1/jobs", { type: "preheat", args });
  while (job.status === "PENDING") {
    await systemClock.sleep(options.pollMs ?? 200, options.signal);
    job = await call(options, `/api/v1/jobs/${job.id}`);
  }
  if (job.status === "SUCCESS") return job;
  throw new LacewingError("source_failed", `Cannot preheat ${args.url}: job ${job.id} ended as ${job.status}`, {
    cause: job.result,
  });
}

async function call({ manager, token, signal }: PreheatOptions, path: string, body?: unknown): Promise<PreheatJob> {
  const response = await fetch(new URL(path, manager), {
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
  const text = await response.text();
  const answer = readJson(text);
  if (response.ok && answer !== null) return answer as unknown as PreheatJob;
  const code = isErrorCode(answer?.code) ? answer.code : "unknown";
  throw new LacewingError(code, `The manager answered ${response.status}: ${answer?.detail ?? text.slice(0, 200)}`);
}

function readJson(text: string): Record<string, unknown> | null {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}
