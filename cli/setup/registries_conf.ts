/**
 * Plans the drop-in of registries.conf that podman, skopeo, buildah and CRI-O
 * read. They do not tell a mirror which registry they mean, so its name stands
 * in the mirror's location, and every registry needs an entry.
 *
 * Keeps: a later file replaces a registry's whole entry of an earlier one, so
 * what the user says of a registry elsewhere is repeated in ours.
 */
import { LacewingError } from "../../peer/core/errors.ts";
import { blocksOf, dropBlocks, outsideOf, putBlock } from "./marked_block.ts";
import {
  type ConfigFiles,
  isSameButNewline,
  type Registry,
  restored,
  type SetupOrder,
  type SetupPlan,
} from "./plan.ts";
import { DOCKER_HUB, knownTo, serves, theOne } from "./registries.ts";
import { readToml, type Table, tablesIn, textIn } from "./toml.ts";

const MAIN = "/etc/containers/registries.conf";
const FOLDER = "/etc/containers/registries.conf.d";
const PATH = `${FOLDER}/lacewing.conf`;

/** A registry's entry in somebody's file. */
export interface Entry {
  readonly path: string;
  readonly table: Table;
}

/** @throws {LacewingError} `config_invalid`, `conflict`, `policy` */
export async function planRegistriesConf(order: SetupOrder, files: ConfigFiles): Promise<SetupPlan> {
  const before = await files.read(PATH);
  const change = { path: PATH, before, keepsBackup: before !== null && blocksOf(before).length === 0 };
  if (order.remove) {
    const { text: after, notes } = without(before ?? "", order);
    if (before === null || after === before) return { changes: [], notes };
    const text = await restored({ path: PATH, text: after, isSame: isSameButNewline }, files);
    return { changes: [{ ...change, after: text }], notes: [...notes, ...reloadNotes(order)] };
  }
  if (before !== null) readToml(before, files.pathOf(PATH));
  const registries = wantedBy(order);
  for (const registry of registries) serves(order, registry);
  const entries = await readEntries(files);
  const notes: string[] = [];
  let after = before ?? "";
  for (const registry of registries) {
    const theirs = entries.filter(({ table }) => prefixOf(table) === registry.host).at(-1) ?? null;
    const location = locationFor(registry, order);
    if (theirs !== null && hasMirror(theirs.table, location)) {
      notes.push(`${theirs.path} has the mirror for ${registry.host} already`);
      continue;
    }
    if (theirs !== null) notes.push(takeOver(theirs, registry));
    const body = renderEntry(registry, { location, theirs, order });
    after = putBlock(after, {
      name: registry.host,
      body,
      users: [...othersOf(after, registry.host, order), order.runtime].sort(),
    });
  }
  readToml(after, files.pathOf(PATH));
  if (order.registries.length === 0) {
    notes.push(
      `registries are mirrored by their names: ${
        registries.map(({ host }) => host).join(", ")
      }; others need --registry`,
    );
  }
  const isNothing = before === null && after === "";
  return { changes: isNothing ? [] : [{ ...change, after }], notes: [...notes, ...reloadNotes(order)] };
}

/** Other runtimes that the registry's block was set up for. */
function othersOf(text: string, host: string, { runtime }: SetupOrder): string[] {
  const users = blocksOf(text).find(({ name }) => name === host)?.users ?? [];
  return users.filter((user) => user !== runtime);
}

/** The text without the blocks that no other runtime was set up with; all of them read the one file. */
function without(text: string, order: SetupOrder): { text: string; notes: string[] } {
  const names = order.registries.map(({ host }) => host);
  const kept = new Map<string, string[]>();
  let rest = text;
  for (const block of blocksOf(text).filter(({ name }) => names.length === 0 || names.includes(name))) {
    const users = othersOf(text, block.name, order);
    if (users.length === 0) rest = dropBlocks(rest, (name) => name === block.name);
    else rest = putBlock(rest, { ...block, users });
    for (const user of users) kept.set(user, [...kept.get(user) ?? [], block.name]);
  }
  const notes = [...kept].map(([user, hosts]) =>
    `what setup ${user} wrote stays, and ${order.runtime} reads it as well: ${hosts.join(", ")}; ` +
    `lacewing setup ${user} --remove takes it back`
  );
  return { text: rest, notes };
}

/** One `[[registry]]` with our mirror before all others. */
export function renderEntry(
  registry: Registry,
  { location, theirs, order }: { location: string; theirs: Entry | null; order: SetupOrder },
): string {
  const { mirror: mirrors, prefix: _, location: ownLocation, ...settings } = theirs?.table ?? {};
  const place = typeof ownLocation === "string" ? ownLocation : registry.host;
  const ours = { location, ...(order.mirror.protocol === "http:" ? { insecure: true } : {}) };
  return [
    "[[registry]]",
    `prefix = ${toml(registry.host)}`,
    `location = ${toml(place)}`,
    ...lines({ ...(registry.isPlain ? { insecure: true } : {}), ...settings }),
    ...[ours, ...tablesIn(mirrors)].flatMap((one) => ["[[registry.mirror]]", ...lines(one)]),
  ].join("\n");
}

function wantedBy(order: SetupOrder): readonly Registry[] {
  if (order.registries.length > 0) return order.registries;
  const fixed = theOne(order);
  if (fixed !== null) return [fixed];
  return order.proxy === null ? [DOCKER_HUB] : knownTo(order.proxy);
}

/** A daemon that serves one registry alone does not look for a name in the path. */
function locationFor({ host }: Registry, order: SetupOrder): string {
  if (theOne(order) !== null) return order.mirror.host;
  if (host.startsWith("[")) {
    throw new LacewingError(
      "usage",
      `Cannot set up ${order.runtime} for ${host}: its address cannot stand in a mirror's location; give the registry a name`,
    );
  }
  // A colon in a path is no reference to podman, which then does not go on to the registry either.
  return `${order.mirror.host}/${host.replace(/:(\d+)$/, "__$1")}`;
}

/** Every entry outside of our blocks, in the order in which the files count. */
async function readEntries(files: ConfigFiles): Promise<Entry[]> {
  const names = (await files.list(FOLDER)).filter((name) => name.endsWith(".conf")).sort();
  const entries: Entry[] = [];
  for (const path of [MAIN, ...names.map((name) => `${FOLDER}/${name}`)]) {
    const text = await files.read(path);
    if (text === null) continue;
    const table = readToml(path === PATH ? outsideOf(text) : text, files.pathOf(path));
    entries.push(...tablesIn(table.registry).map((one) => ({ path, table: one })));
  }
  return entries;
}

/** @throws {LacewingError} `conflict` where our entry would not count */
function takeOver({ path }: Entry, { host }: Registry): string {
  if (path !== PATH && (path === MAIN || path < PATH)) {
    return `what ${path} says of ${host} is repeated in ${PATH}, whose entry replaces it`;
  }
  const reason = path === PATH ? "there is an entry by hand" : "that file comes after ours and would replace it";
  throw new LacewingError(
    "conflict",
    `Cannot set up ${host} beside ${path}: ${reason}; remove its [[registry]] of ${host}, or add the mirror there`,
  );
}

function prefixOf(table: Table): string | null {
  return textIn(table, "prefix") ?? textIn(table, "location");
}

function hasMirror(table: Table, location: string): boolean {
  return tablesIn(table.mirror).some((mirror) => mirror.location === location);
}

/** Keys with texts, numbers and booleans; there are no others in a registry. */
function lines(table: Table): string[] {
  return Object.entries(table).filter(([, value]) => ["string", "boolean", "number"].includes(typeof value))
    .map(([key, value]) => `${key} = ${toml(value)}`);
}

/** A TOML string is a JSON string as long as it holds no control characters beyond those that JSON escapes. */
function toml(value: unknown): string {
  return JSON.stringify(value);
}

function reloadNotes({ runtime }: SetupOrder): string[] {
  return runtime === "crio"
    ? ["CRI-O reads it again after systemctl reload crio; podman, skopeo and buildah read the same file"]
    : ["skopeo, buildah and CRI-O read the same file; CRI-O after systemctl reload crio"];
}
