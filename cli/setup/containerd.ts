/**
 * Plans containerd's `certs.d`: `_default/hosts.toml` for every registry, or a
 * folder for each that is named. containerd tells the mirror by `ns` which
 * registry it means, so one file serves all.
 *
 * Keeps: what others wrote in a hosts.toml stays; our host comes first. A
 * `server` line is written only for a plain-http registry: without one
 * containerd takes its own default, and 1.6 refuses `server` without a host.
 */
import { LacewingError } from "../../peer/core/errors.ts";
import { blocksOf, dropBlocks, putBlock } from "./marked_block.ts";
import {
  type ConfigFiles,
  type FileChange,
  isSameButNewline,
  type Registry,
  restored,
  type SetupOrder,
  type SetupPlan,
} from "./plan.ts";
import { serves, theOne } from "./registries.ts";
import { readToml, type Table, tableAt, textIn } from "./toml.ts";

const CONFIG = "/etc/containerd/config.toml";
const FOLDER = "/etc/containerd/certs.d";
const BLOCK = "containerd";
/** Where the versions of containerd's configuration have the registries of CRI. */
const CRI_PLUGINS = ["io.containerd.cri.v1.images", "io.containerd.grpc.v1.cri", "cri"] as const;

/** What config.toml says of registries. */
export interface ContainerdConfig {
  /** The folder that CRI reads, or null. */
  readonly configPath: string | null;
  /** The table that `config_path` belongs into, as its header. */
  readonly header: string;
  /** Whether registries are configured in the old way, which excludes `config_path`. */
  readonly hasMirrors: boolean;
}

/** @throws {LacewingError} `config_invalid`, `policy` */
export async function planContainerd(order: SetupOrder, files: ConfigFiles): Promise<SetupPlan> {
  const config = await readConfig(files);
  const folder = config.configPath ?? FOLDER;
  if (order.remove) return { changes: await removals(order, folder, files), notes: [] };
  const fixed = theOne(order);
  const registries = order.registries.length === 0 && fixed !== null ? [fixed] : order.registries;
  for (const registry of registries) serves(order, registry);
  const present = await files.list(folder);
  const targets = registries.length === 0
    ? [{ name: "_default", registry: null }]
    : registries.map((registry) => ({ name: folderName(registry, present), registry }));
  const changes = await Promise.all(targets.map(async ({ name, registry }): Promise<FileChange> => {
    const path = `${folder}/${name}/hosts.toml`;
    const before = await files.read(path);
    const after = withHost(before ?? "", { path: files.pathOf(path), mirror: order.mirror, registry });
    return { path, before, after, keepsBackup: before !== null && blocksOf(before).length === 0 };
  }));
  return {
    changes,
    notes: [...configNotes(config, folder), ...await shadowNotes(targets, { folder, present, files })],
  };
}

/** The text of a hosts.toml with our mirror as its first host. @throws {LacewingError} `config_invalid` */
export function withHost(
  text: string,
  { path, mirror, registry }: { path: string; mirror: URL; registry: Registry | null },
): string {
  readToml(text, path);
  const others = dropBlocks(text);
  const was = readToml(others, path);
  if (Object.hasOwn(tableAt(was, "host"), mirror.origin)) return others;
  const isPlain = registry?.isPlain === true && was.server === undefined;
  const body = [
    ...(isPlain ? [`server = "http://${registry.host}"`] : []),
    `[host."${mirror.origin}"]`,
    '  capabilities = ["pull", "resolve"]',
  ].join("\n");
  const after = putBlock(others, { name: BLOCK, body }, /^\s*\[/);
  checkOnlyAdded(after, { was, path, origin: mirror.origin });
  return after;
}

/** What stands in config.toml, and in the files that it imports. @throws {LacewingError} `config_invalid` */
export async function readConfig(files: ConfigFiles): Promise<ContainerdConfig> {
  const text = await files.read(CONFIG);
  const main = text === null ? {} : readToml(text, files.pathOf(CONFIG));
  const tables = [main];
  for (const path of await importsOf(main, files)) {
    const imported = await files.read(path);
    if (imported !== null) tables.push(readToml(imported, files.pathOf(path)));
  }
  const places = tables.flatMap((table) => CRI_PLUGINS.map((plugin) => tableAt(table, "plugins", plugin, "registry")));
  const paths = places.map((place) => textIn(place, "config_path")).filter((path) => path !== null && path !== "");
  const plugin = main.version === 3 ? CRI_PLUGINS[0] : main.version === 1 ? CRI_PLUGINS[2] : CRI_PLUGINS[1];
  return {
    // Several folders are joined by colons; the first one counts most.
    configPath: paths.at(-1)?.split(":")[0]?.replace(/\/+$/, "") ?? null,
    header: `[plugins."${plugin}".registry]`,
    hasMirrors: places.some((place) =>
      ["mirrors", "configs"].some((key) => Object.keys(tableAt(place, key)).length > 0)
    ),
  };
}

async function importsOf(table: Table, files: ConfigFiles): Promise<string[]> {
  const patterns = Array.isArray(table.imports) ? table.imports.filter((path) => typeof path === "string") : [];
  const found = await Promise.all(patterns.map(async (pattern) => {
    const at = pattern.lastIndexOf("/");
    const [folder, name] = [pattern.slice(0, at), pattern.slice(at + 1)];
    if (!name.includes("*")) return [pattern];
    const parts = name.split("*").map((part: string) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    const matches = new RegExp(`^${parts.join(".*")}$`);
    return (await files.list(folder)).filter((one) => matches.test(one)).map((one) => `${folder}/${one}`);
  }));
  return found.flat();
}

async function removals({ registries }: SetupOrder, folder: string, files: ConfigFiles): Promise<FileChange[]> {
  const names = new Set(registries.flatMap(({ host }) => [host, portFolder(host)]));
  const changes: FileChange[] = [];
  for (const name of await files.list(folder)) {
    if (names.size > 0 && !names.has(name)) continue;
    const path = `${folder}/${name}/hosts.toml`;
    const before = await files.read(path);
    if (before === null || blocksOf(before).length === 0) continue;
    const rest = dropBlocks(before);
    const after = await restored({ path, text: rest, isSame: isSameButNewline }, files);
    changes.push({ path, before, after, keepsBackup: false });
  }
  return changes;
}

/** containerd looks for `HOST_PORT_` before `HOST:PORT`. */
function folderName({ host }: Registry, present: readonly string[]): string {
  return present.includes(portFolder(host)) ? portFolder(host) : host;
}

function portFolder(host: string): string {
  return host.replace(/:(\d+)$/, "_$1_");
}

function configNotes({ configPath, header, hasMirrors }: ContainerdConfig, folder: string): string[] {
  const notes: string[] = [];
  if (configPath === null) {
    notes.push(
      `${CONFIG} sets no config_path, so that pulls by CRI (Kubernetes) may not read ${folder}: put ` +
        `config_path = "${folder}" under ${header} there and restart containerd; ctr takes --hosts-dir ${folder}`,
    );
  }
  if (hasMirrors) {
    notes.push(
      `${CONFIG} configures registries in the old way (registry.mirrors or registry.configs), which containerd does ` +
        `not take together with config_path: move them into hosts.toml files below ${folder}`,
    );
  }
  return notes;
}

/** A folder of a registry's own, even an empty one, comes before `_default`. */
async function shadowNotes(
  targets: readonly { name: string }[],
  { folder, present, files }: { folder: string; present: readonly string[]; files: ConfigFiles },
): Promise<string[]> {
  if (targets[0]?.name !== "_default") return [];
  const own: string[] = [];
  for (const name of present.filter((one) => one !== "_default")) {
    const text = await files.read(`${folder}/${name}/hosts.toml`);
    if (text === null || blocksOf(text).length === 0) own.push(name.replace(/_(\d+)_$/, ":$1"));
  }
  if (own.length === 0) return [];
  return [
    `folders of their own in ${folder} come before _default, so that these registries are not pulled through the ` +
    `daemon: ${own.join(", ")}; name them with --registry`,
  ];
}

/** The last look before a file that others own is changed. */
function checkOnlyAdded(after: string, { was, path, origin }: { was: Table; path: string; origin: string }): void {
  const now = readToml(after, path);
  const { [origin]: ours, ...hosts } = tableAt(now, "host");
  const isFirst = Object.keys(tableAt(now, "host"))[0] === origin;
  const rest = { ...now, host: hosts, server: was.server };
  const same = JSON.stringify(sorted(rest)) === JSON.stringify(sorted({ ...was, host: tableAt(was, "host") }));
  if (ours !== undefined && isFirst && same) return;
  throw new LacewingError(
    "config_invalid",
    `Cannot change ${path} without changing what stands in it: put [host."${origin}"] with capabilities = ["pull", ` +
      `"resolve"] before its first host`,
  );
}

function sorted(table: Table): unknown[] {
  return Object.entries(table).filter(([, value]) => value !== undefined).sort(([a], [b]) => a < b ? -1 : 1);
}
