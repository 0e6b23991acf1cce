/**
 * Plans dockerd's daemon.json: our mirror before the others of
 * `registry-mirrors`. JSON has no comments, so a file beside it
 * (`daemon.json.lacewing`, which dockerd does not read) remembers what is ours.
 *
 * dockerd asks mirrors for Docker Hub's images only, and never tells which
 * registry it means.
 */
import { isLoopback } from "../../peer/core/address.ts";
import { LacewingError } from "../../peer/core/errors.ts";
import { BACKUP_SUFFIX, type ConfigFiles, restored, type SetupOrder, type SetupPlan } from "./plan.ts";
import { DOCKER_HUB, knownTo } from "./registries.ts";

const PATH = "/etc/docker/daemon.json";
const RECORD = `${PATH}.lacewing`;
const LISTS = ["registry-mirrors", "insecure-registries"] as const;

type Lists = Readonly<Record<typeof LISTS[number], readonly string[]>>;
type Json = Record<string, unknown>;

const NOTHING: Lists = { "registry-mirrors": [], "insecure-registries": [] };

/** @throws {LacewingError} `config_invalid` for a file that cannot be read, `usage` for another registry */
export async function planDocker(order: SetupOrder, files: ConfigFiles): Promise<SetupPlan> {
  const other = order.registries.find(({ host }) => host !== DOCKER_HUB.host);
  if (other !== undefined) {
    throw new LacewingError(
      "usage",
      `Cannot set up docker for ${other.host}: dockerd asks mirrors for Docker Hub's images only; leave out --registry, ` +
        "or pull with containerd or podman",
    );
  }
  const [before, record] = [await files.read(PATH), await files.read(RECORD)];
  const [path, recordPath] = [files.pathOf(PATH), files.pathOf(RECORD)];
  const ours = record === null ? NOTHING : listsOf(readJson(record, recordPath), recordPath);
  const file = { path: PATH, before, keepsBackup: before !== null && record === null };
  if (order.remove) {
    if (record === null) return { changes: [], notes: [] };
    const rest = before === null ? null : withLists(before, { path, ours, wanted: NOTHING }).text;
    const isEmpty = rest === null || Object.keys(readJson(rest, path)).length === 0;
    const isOurs = isEmpty && await files.read(`${PATH}${BACKUP_SUFFIX}`) === null;
    const isSame = (a: string, b: string) => meaningOf(a, path) === meaningOf(b, path);
    const after = rest === null || isOurs ? null : await restored({ path: PATH, text: rest, isSame }, files);
    return {
      changes: [{ ...file, after }, { path: RECORD, before: record, after: null, keepsBackup: false }],
      notes: [isForgotten(after, { path, ours }) ? RESTART : RELOAD],
    };
  }
  const { text, added } = withLists(before ?? "", { path, ours, wanted: wantedFor(order.mirror) });
  return {
    changes: [
      { ...file, after: text },
      { path: RECORD, before: record, after: `${JSON.stringify(added, null, 2)}\n`, keepsBackup: false },
    ],
    notes: [RELOAD, ...upstreamNotes(order)],
  };
}

const RELOAD = "dockerd reads it again after systemctl reload docker";
const RESTART =
  "dockerd goes on with the mirror until systemctl restart docker: a reload keeps what the file no longer names";

/** Whether a list that had entries of ours is gone: dockerd changes only what a reloaded file names (seen with 20.10). */
function isForgotten(text: string | null, { path, ours }: { path: string; ours: Lists }): boolean {
  const json = text === null ? {} : readJson(text, path);
  return LISTS.some((name) => ours[name].length > 0 && !Object.hasOwn(json, name));
}

/** dockerd takes http only from loopback, unless it is told otherwise. */
function wantedFor(mirror: URL): Lists {
  const isPlain = mirror.protocol === "http:" && !isLoopback(mirror.hostname.replace(/^\[|\]$/g, ""));
  return { "registry-mirrors": [mirror.origin], "insecure-registries": isPlain ? [mirror.host] : [] };
}

function upstreamNotes({ proxy }: SetupOrder): string[] {
  const upstream = proxy === null ? null : knownTo(proxy)[0];
  if (upstream === null || upstream === undefined || upstream.host === DOCKER_HUB.host) return [];
  return [
    `dockerd will ask for Docker Hub's images, and the daemon asks ${upstream.host} for them: set ` +
    "proxy.registryMirror.url to https://index.docker.io",
  ];
}

/**
 * The text without what was ours and with what is wanted in front; what the user has already is not added.
 *
 * @throws {LacewingError} `config_invalid`
 */
export function withLists(
  text: string,
  { path, ours, wanted }: { path: string; ours: Lists; wanted: Lists },
): { text: string; added: Lists } {
  const json = readJson(text, path);
  const has = listsOf(json, path);
  const added: Record<string, readonly string[]> = {};
  const result: Json = { ...json };
  let isChanged = false;
  for (const name of LISTS) {
    const kept = has[name].filter((entry) => !ours[name].some((own) => isSame(own, entry)));
    const fresh = wanted[name].filter((entry) => !kept.some((one) => isSame(one, entry)));
    const entries = [...fresh, ...kept];
    added[name] = fresh;
    if (JSON.stringify(entries) === JSON.stringify(has[name])) continue;
    isChanged = true;
    if (entries.length > 0) result[name] = entries;
    else delete result[name];
  }
  if (!isChanged) return { text, added: added as Lists };
  const indent = /^\s*\{\s*\n([ \t]+)"/.exec(text)?.[1] ?? "  ";
  return { text: `${JSON.stringify(result, null, indent)}\n`, added: added as Lists };
}

/** The same text for files that tell dockerd the same. */
function meaningOf(text: string, path: string): string {
  const isNothing = (value: unknown) => Array.isArray(value) && value.length === 0;
  return JSON.stringify(Object.entries(readJson(text, path)).filter(([, value]) => !isNothing(value)));
}

function isSame(a: string, b: string): boolean {
  return a.replace(/\/+$/, "") === b.replace(/\/+$/, "");
}

function readJson(text: string, path: string): Json {
  let value: unknown;
  try {
    value = text.trim() === "" ? {} : JSON.parse(text);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.split("\n")[0] : String(cause);
    throw new LacewingError("config_invalid", `Cannot read ${path}: not JSON: ${reason}`, { cause });
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Json;
  throw new LacewingError("config_invalid", `Cannot use ${path}: want a JSON object in it`);
}

function listsOf(json: Json, path: string): Lists {
  const list = (name: string): string[] => {
    const value = json[name] ?? [];
    if (Array.isArray(value) && value.every((entry) => typeof entry === "string")) return value;
    throw new LacewingError("config_invalid", `Cannot use ${path}: ${name}: want a list of texts`);
  };
  return { "registry-mirrors": list(LISTS[0]), "insecure-registries": list(LISTS[1]) };
}
