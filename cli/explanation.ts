/**
 * Says which task a URL is, who has it, and why the proxy's task for the same
 * URL is another one. Pure; what signed URLs keep secret is blotted out.
 */
import { escapeControls, redactText } from "../peer/core/log.ts";
import { canonicalUrl, parseFilter, taskId } from "../peer/core/task_id.ts";
import { formatBytes } from "../peer/core/units.ts";
import type { Explained, ExplainQuestion } from "../peer/ipc/client.ts";

type Task = Explained["tasks"][number];

/** What `--json` prints. */
export interface Explanation {
  readonly task_id: string;
  /** As the id sees it. */
  readonly url: string;
  readonly filter: string;
  /** Names of the parameters that the filter left out of this URL. */
  readonly left_out: readonly string[];
  readonly tag: string;
  /** Null where the daemon could not be asked. */
  readonly found: Found | null;
  /** Why the daemon, or the schedulers, could not be asked; null: they were. */
  readonly not_asked: { readonly daemon: string | null; readonly cluster: string | null };
  /** Null without a daemon or without its proxy. */
  readonly proxy: readonly ProxyTask[] | null;
}

/** Who has a task. */
type Found = Pick<Task, "held" | "hosts" | "jobs"> & { readonly other_hosts: number };

interface ProxyTask {
  /** Who asks so. */
  readonly ways: Task["ways"];
  readonly task_id: string;
  readonly url: string;
  readonly filter: string;
  readonly tag: string;
  readonly shared: boolean;
  /** Empty where it is the same task. */
  readonly differs: readonly string[];
  readonly found: Found;
}

const NAMES: Record<Task["ways"][number], string> = {
  request: "the command",
  containerd: "containerd",
  mirror: "podman, skopeo, CRI-O and docker",
  proxy: "programs with HTTP_PROXY",
};

/** @param reason why the daemon could not be asked */
export function explanationOf(
  { url, filter, tag }: ExplainQuestion,
  { explained, reason }: { explained: Explained | null; reason: string | null },
): Explanation {
  const own = explained?.tasks.find(({ ways }) => ways.includes("request"));
  return {
    task_id: taskId(url, { filter, tag }),
    url: shown(canonicalUrl(url, filter)),
    filter,
    left_out: parseFilter(filter).filter((name) => canonicalUrl(url, name) !== canonicalUrl(url)),
    tag,
    found: explained === null || own === undefined ? null : foundOf(own, explained.host_id),
    not_asked: { daemon: reason, cluster: explained?.cluster_error?.message ?? null },
    proxy: explained === null || explained.proxy === null
      ? null
      : explained.tasks.filter((task) => task !== own).map((task) => ({
        ways: task.ways,
        task_id: task.task_id,
        url: shown(canonicalUrl(task.url, task.filter)),
        filter: task.filter,
        tag: task.tag,
        shared: task.shared,
        differs: differences({ url, filter, tag }, task),
        found: foundOf(task, explained.host_id),
      })),
  };
}

/** Lines for people, newline at the end. */
export function renderExplanation(explanation: Explanation): string {
  const { left_out: left, filter, tag, not_asked: notAsked, proxy } = explanation;
  const lines = [
    row("task", explanation.task_id),
    row("url", explanation.url),
    row("filter", filter === "" ? "none" : `${filter} (left out here: ${left.join(", ") || "nothing"})`),
    row("tag", tag === "" ? "none" : tag),
    ...holders(explanation.found, notAsked),
  ];
  if (notAsked.daemon !== null) lines.push(row("proxy", "not asked"));
  else if (proxy === null) lines.push(row("proxy", "this daemon has none"));
  for (const task of proxy ?? []) lines.push("", ...proxyLines(task, notAsked));
  return `${lines.map(escapeControls).join("\n")}\n`;
}

function proxyLines(task: ProxyTask, notAsked: Explanation["not_asked"]): string[] {
  const who = task.ways.map((way) => NAMES[way]).join(", ");
  const bypass = task.shared
    ? []
    : [row("swarm", "passes by: only blobs and what a rule of proxy.proxies matches is shared")];
  if (task.differs.length === 0) return [row("proxy", `for ${who}: the same task`), ...bypass];
  return [
    row("proxy", `for ${who}: another task, ${task.task_id}`),
    row("url", task.url),
    ...task.differs.map((reason) => row("differs", reason)),
    ...bypass,
    ...holders(task.found, notAsked),
  ];
}

function holders(found: Found | null, notAsked: Explanation["not_asked"]): string[] {
  if (found === null) {
    const reason = row("daemon", `not asked: ${notAsked.daemon ?? "no answer"}`);
    return [reason, row("cluster", "not asked"), row("preheat", "not asked")];
  }
  if (notAsked.cluster !== null) {
    return [
      row("daemon", heldText(found)),
      ...["cluster", "preheat"].map((name) => row(name, `not asked: ${notAsked.cluster}`)),
    ];
  }
  const names = found.hosts.map(({ hostname, host_id, complete, piece_count }) =>
    `${hostname || host_id} (${complete ? "complete" : `${piece_count} ${piece_count === 1 ? "piece" : "pieces"}`})`
  );
  const more = found.other_hosts - found.hosts.length;
  const others = more > 0 ? [...names, `${more} more`] : names;
  const jobs = found.jobs.map(({ job_id, cluster_id, state, job_state, host_count }) =>
    `job ${job_id} (${job_state}): ${state} in cluster ${cluster_id}, on ${host_count} ${
      host_count === 1 ? "host" : "hosts"
    }`
  );
  return [
    row("daemon", heldText(found)),
    row("cluster", others.length === 0 ? "no other host has it" : others.join(", ")),
    row("preheat", jobs.length === 0 ? "no job had it" : jobs.join("; ")),
  ];
}

function heldText({ held }: Found): string {
  if (held === null) return "has nothing of it";
  const { content_length, pieces, piece_count, complete, verified } = held;
  const count = `${pieces} ${pieces === 1 ? "piece" : "pieces"}`;
  if (!complete) return `has ${piece_count} of ${count}`;
  return `has it: ${formatBytes(content_length)} in ${count}${verified === null ? "" : `, verified ${verified}`}`;
}

/** Only hosts besides this one; this daemon speaks for itself. */
function foundOf({ held, hosts, host_count, jobs }: Task, hostId: string): Found {
  const others = hosts.filter(({ host_id }) => host_id !== hostId);
  return { held, hosts: others, other_hosts: host_count - (hosts.length - others.length), jobs };
}

/** Why two tasks are not one; empty where they are. */
export function differences(own: ExplainQuestion, theirs: Pick<Task, "url" | "filter" | "tag">): string[] {
  if (taskId(own.url, own) === taskId(theirs.url, theirs)) return [];
  const reasons: string[] = [];
  const [mine, other] = [new URL(canonicalUrl(own.url, own.filter)), new URL(canonicalUrl(theirs.url, theirs.filter))];
  const place = (url: URL) => `${url.origin}${url.pathname}`;
  if (place(mine) !== place(other)) {
    reasons.push(`the proxy asks ${place(other)} (proxy.registryMirror, or a rule's redirect)`);
  }
  const [kept, wanted] = [parameters(mine), parameters(other)];
  const filter = `proxy.defaultFilter is ${JSON.stringify(theirs.filter)}`;
  for (const part of wanted.filter((one) => !kept.includes(one))) {
    reasons.push(`${shown(`?${part}`).slice(1)} stays in the proxy's URL: ${filter}`);
  }
  for (const part of kept.filter((one) => !wanted.includes(one))) {
    const flag = own.filter === "" ? "there is no --filter" : `--filter is ${JSON.stringify(own.filter)}`;
    reasons.push(
      `${shown(`?${part}`).slice(1)} stays in the URL of the command (${flag}), and not in the proxy's: ${filter}`,
    );
  }
  if (own.tag !== theirs.tag) {
    reasons.push(
      `the tag of the command is ${JSON.stringify(own.tag)}, proxy.defaultTag is ${JSON.stringify(theirs.tag)}`,
    );
  }
  return reasons.length > 0 ? reasons : ["the order of equal parameters"];
}

function parameters(url: URL): string[] {
  return url.search.slice(1).split("&").filter((part) => part !== "");
}

/** The values of signatures and the like are secrets. */
function shown(text: string): string {
  return redactText(text);
}

function row(name: string, text: string): string {
  return `${name.padEnd(8)} ${text}`;
}
