/**
 * A job's arguments in their two forms, both pure: as they are run (defaults
 * filled in, secrets included, kept only until the job ends) and as they are
 * echoed (the caller's own fields, secrets blotted out).
 */
import { redactHeaders } from "../../peer/core/log.ts";
import { taskId } from "../../peer/core/task_id.ts";
import type { PreheatScope } from "../scheduler/schedulers.ts";
import type { JobRequest } from "./job_request.ts";

/** How a preheat is run. */
export interface PreheatArgs {
  readonly type: "image" | "file";
  readonly urls: readonly string[];
  readonly filter: string;
  readonly tag: string;
  readonly headers: Record<string, string>;
  /** Null: those of the cluster's live hosts. */
  readonly platforms: string[] | "all" | null;
  readonly username?: string;
  readonly password?: string;
  readonly scope: PreheatScope;
  /** Seconds. */
  readonly timeout: number;
}

/** How `get_task` and `delete_task` are run. */
export interface TaskArgs {
  readonly task_id: string;
  readonly url: string | null;
  readonly timeout: number;
}

export interface SyncPeersArgs {
  readonly timeout: number;
}

export type RunArgs = PreheatArgs | TaskArgs | SyncPeersArgs;

const BLOTTED = "***";

/** The cluster ids of a request, from either place; null is all. */
export function clusterIdsOf(request: JobRequest): number[] | null {
  const ids = request.args.scheduler_cluster_ids ?? request.scheduler_cluster_ids;
  return ids === null || ids === undefined ? null : [...new Set(ids)];
}

/** @param timeoutSeconds what counts when the request names none */
export function runArgsOf(request: JobRequest, { timeoutSeconds }: { timeoutSeconds: number }): RunArgs {
  const timeout = request.args.timeout ?? timeoutSeconds;
  if (request.type === "sync_peers") return { timeout };
  const { tag = "" } = request.args;
  const filter = request.args.filter ?? request.args.filtered_query_params ?? "";
  if (request.type !== "preheat") {
    const { task_id, url = null } = request.args;
    return { task_id: task_id ?? taskId(url ?? "", { tag, filter }), url, timeout };
  }
  const { args } = request;
  const common = { filter, tag, headers: args.headers ?? {}, scope: args.scope, timeout };
  if (args.type === "file") {
    const urls = [...(args.url === undefined ? [] : [args.url]), ...(args.urls ?? [])];
    return { type: "file", urls, platforms: null, ...common };
  }
  return {
    type: "image",
    urls: [args.url],
    platforms: platformsOf(args.platform),
    ...(args.username === undefined ? {} : { username: args.username }),
    ...(args.password === undefined ? {} : { password: args.password }),
    ...common,
  };
}

/** The arguments as the API shows them. */
export function echoOf(request: JobRequest, run: RunArgs): Record<string, unknown> {
  const given: Record<string, unknown> = { ...request.args, timeout: run.timeout };
  if (request.type === "sync_peers") return given;
  given.filter = request.args.filter ?? request.args.filtered_query_params ?? "";
  given.tag = request.args.tag ?? "";
  if (request.type !== "preheat") return given;
  const { headers } = request.args;
  given.headers = headers === null || headers === undefined ? null : redactHeaders(headers);
  return Object.fromEntries(
    Object.entries(given).map(([key, value]) => [key, key === "password" ? BLOTTED : value]),
  );
}

function platformsOf(platform: string | string[] | undefined): string[] | "all" | null {
  if (platform === undefined) return null;
  const list = Array.isArray(platform) ? [...new Set(platform)] : [platform];
  return list.includes("all") ? "all" : list;
}
