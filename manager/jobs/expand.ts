/**
 * Turns a preheat's arguments into the tasks of one cluster: a file's URLs as
 * they are, an image as everything that a host of the wanted platforms pulls.
 * What cannot be found out becomes a failed task that names URL and reason, so
 * that a job always shows why.
 */
import { digestInUrl, formatDigest } from "../../peer/core/digest.ts";
import { LacewingError, toWireError } from "../../peer/core/errors.ts";
import { redactText } from "../../peer/core/log.ts";
import { taskId } from "../../peer/core/task_id.ts";
import type { HostView } from "../scheduler/schedulers.ts";
import type { NewJobTask } from "../store/job_tasks.ts";
import type { PreheatArgs } from "./job_args.ts";
import type { ResolvedItem, Resolver, ResolveRequest } from "../registry/resolver.ts";

export type Resolve = (request: ResolveRequest) => ReturnType<Resolver["resolve"]>;

/**
 * The tasks of a cluster.
 *
 * @param hosts its live hosts
 * @param resolve asks the registry, retries included
 */
export async function clusterTasks(
  args: PreheatArgs,
  { cluster, hosts, resolve }: {
    cluster: { readonly id: number; readonly name: string };
    hosts: readonly Pick<HostView, "platform">[];
    resolve: Resolve;
  },
): Promise<NewJobTask[]> {
  if (hosts.length === 0) {
    const message = `Cannot preheat in cluster ${cluster.id} ${JSON.stringify(cluster.name)}: it has no live host`;
    return args.urls.map((url) => failedTask(args, url, { code: "unavailable", message }));
  }
  if (args.type === "file") {
    return args.urls.map((url) => pending(args, { url, digest: null, contentLength: null }, null));
  }
  const tasks: NewJobTask[] = [];
  for (const url of args.urls) tasks.push(...await imageTasks(args, { url, hosts, resolve }));
  return tasks;
}

/** What the resolver is asked for an image. @param platforms of the cluster's live hosts, where the job names none */
export function resolveRequest(args: PreheatArgs, url: string, platforms: readonly string[]): ResolveRequest {
  return {
    url,
    headers: args.headers,
    ...(args.username === undefined ? {} : { username: args.username }),
    ...(args.password === undefined ? {} : { password: args.password }),
    platforms: args.platforms ?? [...new Set(platforms)].sort(),
    // Platforms that the caller named must all be there; of those that hosts happen to have, one is enough.
    require: args.platforms === null ? "any" : "each",
  };
}

async function imageTasks(
  args: PreheatArgs,
  { url, hosts, resolve }: { url: string; hosts: readonly Pick<HostView, "platform">[]; resolve: Resolve },
): Promise<NewJobTask[]> {
  try {
    const request = resolveRequest(args, url, hosts.map(({ platform }) => platform));
    const { items, skipped } = await resolve(request);
    if (items.length === 0) {
      throw new LacewingError(
        "source_failed",
        `Cannot preheat ${redactText(url)}: the registry names no content in it`,
      );
    }
    return [
      // A content that is both skipped and wanted (by another platform) is wanted.
      ...skipped.map((item): NewJobTask => ({
        ...failedTask(args, item.url, { code: "policy", message: item.reason }),
        state: "SKIPPED",
      })),
      ...items.map((item) => pending(args, item, item)),
    ];
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    const { code, message } = toWireError(error);
    return [
      failedTask(args, url, {
        code,
        message: redactText(message.includes(url) ? message : `Cannot preheat ${url}: ${message}`),
      }),
    ];
  }
}

function pending(
  { tag, filter }: PreheatArgs,
  { url, digest, contentLength }: Pick<ResolvedItem, "url" | "digest" | "contentLength">,
  item: ResolvedItem | null,
): NewJobTask {
  const promised = digestInUrl(url);
  return {
    taskId: taskId(url, { tag, filter }),
    url,
    digest: digest ?? (promised === null ? null : formatDigest(promised)),
    contentLength,
    state: "PENDING",
    error: null,
    item,
  };
}

/** A task that ended before it began. */
export function failedTask(
  { tag, filter }: PreheatArgs,
  url: string,
  error: { code: string; message: string },
): NewJobTask {
  return {
    taskId: taskId(url, { tag, filter }),
    url,
    digest: null,
    contentLength: null,
    state: "FAILURE",
    error,
    item: null,
  };
}
