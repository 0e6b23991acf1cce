/**
 * Explains a URL: which task it is as the client asks for it, which one the
 * proxy would make of it for each kind of its clients, and who has each of
 * them. The proxy's own functions decide, so that the answer cannot be
 * another one than the proxy's.
 */
import { LacewingError, toWireError } from "./core/errors.ts";
import { pieceCount } from "./core/piece.ts";
import { canonicalUrl, taskId } from "./core/task_id.ts";
import type { Explained, ExplainedTask, ExplainRequest } from "./core/wire/ipc.ts";
import type { FoundJob, FoundTask } from "./core/wire/scheduler.ts";
import type { RegistryMirrorConfig } from "./proxy/registry_mirror.ts";
import { registryTarget } from "./proxy/registry_target.ts";
import { wayOf } from "./proxy/rules.ts";
import type { StoredTaskInfo } from "./storage/piece_store.ts";

/** A task that a URL may be, before anybody is asked who has it. */
export type Way = Pick<ExplainedTask, "task_id" | "url" | "filter" | "tag" | "shared"> & {
  readonly ways: ExplainedTask["ways"];
};

export interface ExplainDeps {
  readonly hostId: string;
  /** Null: it is off. */
  readonly proxy: RegistryMirrorConfig | null;
  readonly stored: () => readonly StoredTaskInfo[];
  /** Null: this daemon works alone. */
  readonly find: ((taskIds: readonly string[]) => Promise<{ tasks: FoundTask[]; jobs: FoundJob[] }>) | null;
}

/** @throws {LacewingError} `usage` for a URL that is none */
export async function explain(request: ExplainRequest, deps: ExplainDeps): Promise<Explained> {
  const ways = waysOf(request, deps.proxy);
  const ids = [...new Set(ways.map(({ task_id }) => task_id))];
  let found: { tasks: FoundTask[]; jobs: FoundJob[] } = { tasks: [], jobs: [] };
  let error: unknown = null;
  try {
    if (deps.find === null) throw new LacewingError("unavailable", "this daemon works alone, without a scheduler");
    found = await deps.find(ids);
  } catch (cause) {
    error = cause;
  }
  const stored = deps.stored();
  const { proxy } = deps;
  return {
    host_id: deps.hostId,
    proxy: proxy === null ? null : { filter: proxy.defaultFilter, tag: proxy.defaultTag },
    cluster_error: error === null ? null : toWireError(error),
    tasks: ways.map((way) => {
      const { host_count = 0, hosts = [] } = found.tasks.find(({ task_id }) => task_id === way.task_id) ?? {};
      return {
        ...way,
        held: heldOf(stored.find(({ spec }) => spec.task_id === way.task_id)),
        host_count,
        hosts,
        jobs: found.jobs.filter(({ task_id }) => task_id === way.task_id).map(({ task_id: _, ...job }) => job),
      };
    }),
  };
}

/** The task as it was asked for, then those of the proxy; ways that lead to one task with one URL are one entry. */
export function waysOf({ url, filter, tag }: ExplainRequest, proxy: RegistryMirrorConfig | null): Way[] {
  const ways: Way[] = [{ ways: ["request"], task_id: taskId(url, { filter, tag }), url, filter, tag, shared: true }];
  if (proxy === null) return ways;
  const { defaultFilter, defaultTag } = proxy;
  for (const { way, url: asked, shared } of proxyUrls(new URL(url), proxy)) {
    const id = taskId(asked.href, { filter: defaultFilter, tag: defaultTag });
    const same = ways.find((one) =>
      one.ways[0] !== "request" && one.task_id === id && one.shared === shared &&
      canonicalUrl(one.url) === canonicalUrl(asked.href)
    );
    if (same !== undefined) same.ways.push(way);
    else {
      ways.push({ ways: [way], task_id: id, url: asked.href, filter: defaultFilter, tag: defaultTag, shared });
    }
  }
  return ways;
}

/** What the proxy's clients would make it ask for. */
function* proxyUrls(
  url: URL,
  proxy: RegistryMirrorConfig,
): Generator<{ way: "containerd" | "mirror" | "proxy"; url: URL; shared: boolean }> {
  if (!/^https?:$/.test(url.protocol)) return;
  [url.username, url.password, url.hash] = ["", "", ""];
  if (!/^\/v2\//.test(url.pathname)) {
    const { url: asked, isShared } = wayOf(url, { rules: proxy.rules, method: "GET" });
    return yield { way: "proxy", url: asked, shared: isShared };
  }
  // The name by which clients call a registry that is reached at another URL.
  const known = proxy.registries.find((registry) => new URL(registry.url).host === url.host);
  const name = url.searchParams.get("ns") || (known?.host ?? url.host);
  // As text: the other parameters keep the encoding that they have.
  const others = url.search.replace(/^\?/, "").split("&").filter((one) => one !== "" && !/^ns(?:=|$)/.test(one)).join(
    "&",
  );
  const nameless = others === "" ? "" : `?${others}`;
  const named = url.searchParams.has("ns") ? url.search : `${nameless || "?"}&ns=${encodeURIComponent(name)}`;
  const targets = [
    ["containerd", `${url.pathname}${named.replace("?&", "?")}`],
    // They never send one.
    ["mirror", `/v2/${name}${url.pathname.slice("/v2".length)}${nameless}`],
  ] as const;
  for (const [way, path] of targets) {
    // Where names do not count, podman is set up without one in the path.
    const target = registryTarget(proxy.dynamic || way === "containerd" ? path : url.pathname + nameless, [], proxy);
    const rule = proxy.rules.find(({ regx }) => regx.test(target.url.href));
    const isBlob = target.kind === "blob" && target.digest !== null;
    yield { way, url: target.url, shared: isBlob && rule?.direct !== true };
  }
}

function heldOf(info: StoredTaskInfo | undefined): ExplainedTask["held"] {
  if (info === undefined) return null;
  const { content_length, piece_length } = info.meta;
  return {
    complete: info.complete,
    content_length,
    piece_count: info.pieceCount,
    pieces: pieceCount({ contentLength: content_length, pieceLength: piece_length }),
    verified: info.verified,
  };
}
