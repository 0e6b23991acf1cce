/**
 * Runs the tasks of deno.json: finds out whether jsr.io can be reached, and starts `deno` with the import
 * map that works here: the `jsr:` one of deno.json, or import_map.npm.json with stand-ins for `@std/*`.
 *
 * Keeps: stdout belongs to the task alone; relative paths mean what they mean where the user stands; signals
 * reach the task and its exit code comes back. Imports nothing, because no map is known before it has run.
 *
 * Locks: deno.lock belongs to the npm map. It cannot hold JSR's digests unless somebody with JSR writes it, and a run
 * that adds them would leave every clone with a changed file. So under the `jsr:` map Deno gets a
 * copy in a file that git ignores: the npm packages stay locked, and the JSR ones from their first use on.
 */

/** Which import map holds: `jsr` is the one in deno.json. */
export type ImportMap = "jsr" | "npm";

/** One run of `deno`: where it stands, and its arguments. */
export interface Run {
  cwd: string;
  args: string[];
}

interface Place {
  root: string;
  /** Where the user called the task. */
  userCwd: string;
  map: ImportMap;
}

const FORWARDED_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const PROBE_TIMEOUT_MS = 3000;
const SOURCES = ["mod.ts", "manager", "peer", "cli", "tests", ".ci"];
const ENTRIES: Record<string, string> = {
  bench: "tests/bench/main.ts",
  client: "cli/main.ts",
  compile: ".ci/compile.ts",
  daemon: "peer/main.ts",
  demo: "tests/demo/main.ts",
  manager: "manager/main.ts",
};
/** These resolve no import, so that the map does not matter to them. */
const MAPLESS_TASKS = ["fmt", "lint"];

/** The flags that make any `deno` subcommand with modules resolve them as the tasks do. */
export function denoFlags(map: ImportMap, root = projectRoot()): string[] {
  return map === "npm"
    ? [`--config=${root}/deno.json`, `--import-map=${root}/import_map.npm.json`, `--lock=${root}/deno.lock`]
    : [`--config=${root}/deno.json`, `--lock=${root}/.deno.jsr.lock`];
}

/**
 * V8's flags for an entry. Those that may be a daemon get new objects a space of 1 MiB, and not one that grows: with
 * it an idle daemon takes 77 MB, without 82 (Deno 2.9.6), and moving 4 GiB makes too few objects to need more.
 */
export function v8Flags(entry: string): string[] {
  return ["cli/main.ts", "peer/main.ts"].includes(entry) ? ["--v8-flags=--max-semi-space-size=1"] : [];
}

/** The map that the calling process itself runs under, for those that start further processes. */
export function mapInUse(): ImportMap {
  try {
    return import.meta.resolve("@std/assert").startsWith("file:") ? "npm" : "jsr";
  } catch {
    return Deno.env.get("DENO_MAP") === "npm" ? "npm" : "jsr";
  }
}

/**
 * What a task runs, one after the other.
 * @throws {RangeError} if there is no such task
 */
export function plan(task: string, args: readonly string[], place: Place): Run[] {
  const { root, userCwd } = place;
  const flags = denoFlags(place.map, root);
  const rest = args[0] === "--" ? args.slice(1) : [...args];
  const entry = ENTRIES[task];
  if (entry !== undefined) {
    return [{ cwd: userCwd, args: ["run", "-A", ...v8Flags(entry), ...flags, `${root}/${entry}`, ...rest] }];
  }
  const sources = SOURCES.map((path) => `${root}/${path}`).filter(exists);
  const targets = withPaths(rest, userCwd, sources);
  const test = ["test", "-A", "--sanitize-ops", "--sanitize-resources", ...flags];
  const config = `--config=${root}/deno.json`;
  switch (task) {
    case "check":
      return [{ cwd: root, args: ["check", ...flags, ...targets] }];
    case "fmt":
      return [{ cwd: root, args: ["fmt", config, ...withPaths(rest, userCwd, [])] }];
    case "lint":
      return [{ cwd: root, args: ["lint", config, ...targets] }];
    case "test":
      return [{ cwd: root, args: [...test, ...withPaths(rest, userCwd, [`${root}/tests`])] }];
    case "ok":
      return [
        { cwd: root, args: ["fmt", config, "--check"] },
        { cwd: root, args: ["lint", config, ...sources] },
        { cwd: root, args: ["check", ...flags, ...sources] },
        { cwd: root, args: [...test, ...[`${root}/tests/unit`, `${root}/tests/tidy_test.ts`].filter(exists), ...rest] },
      ];
    default:
      throw new RangeError(`Cannot run task "${task}": the tasks are those of deno.json`);
  }
}

/** Makes the paths among the arguments absolute; where there is none, adds the paths to take instead. */
function withPaths(args: readonly string[], userCwd: string, otherwise: readonly string[]): string[] {
  // What follows "--" belongs to the tests themselves.
  const end = args.includes("--") ? args.indexOf("--") : args.length;
  let found = false;
  const own = args.slice(0, end).map((arg) => {
    const path = arg.startsWith("/") ? arg : `${userCwd}/${arg}`;
    if (arg.startsWith("-") || !exists(path)) return arg;
    found = true;
    return path;
  });
  return [...own, ...(found ? [] : otherwise), ...args.slice(end)];
}

function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}

/**
 * Asks JSR for one small page, within 3 s; a name that does not resolve is known at once.
 * @returns why JSR cannot be used, null when it can
 */
export async function probeJsr(url: string): Promise<string | null> {
  try {
    const response = await fetch(new URL("/@std/assert/meta.json", url), {
      signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
    });
    // A sign-in page of the network answers 200 as well, but not with this.
    const isJsr = (await response.text()).includes('"versions"') && response.ok;
    return isJsr ? null : `it answers ${response.status} without the package list`;
  } catch (error) {
    return error instanceof DOMException && error.name === "TimeoutError" ? "no answer within 3 s" : "no connection";
  }
}

async function chooseMap(): Promise<ImportMap> {
  const told = Deno.env.get("DENO_MAP");
  if (told === "jsr" || told === "npm") return told;
  const url = Deno.env.get("JSR_URL") ?? "https://jsr.io";
  const problem = await probeJsr(url);
  const host = new URL(url).host;
  console.error(
    problem === null
      ? `lacewing: ${host} answers, taking the import map of deno.json`
      : `lacewing: ${host} is out of reach (${problem}), taking import_map.npm.json`,
  );
  return problem === null ? "jsr" : "npm";
}

/** Renews the copy of deno.lock for the `jsr:` map when deno.lock is newer. */
function prepareJsrLock(root: string): void {
  const [lock, copy] = [`${root}/deno.lock`, `${root}/.deno.jsr.lock`];
  if (!exists(lock)) return;
  if (exists(copy) && Deno.statSync(copy).mtime! >= Deno.statSync(lock).mtime!) return;
  const fresh = `${copy}.${Deno.pid}`;
  Deno.copyFileSync(lock, fresh);
  Deno.renameSync(fresh, copy);
}

async function run({ cwd, args }: Run, env: Record<string, string>): Promise<number> {
  const child = new Deno.Command(Deno.execPath(), {
    args,
    cwd,
    clearEnv: true,
    env,
    stdin: "inherit",
    stdout: "inherit",
    stderr: "inherit",
  }).spawn();
  const handlers = FORWARDED_SIGNALS.map((signal) => ({
    signal,
    handle: () => {
      // From a terminal the signal reaches the whole group: passed on, the task would count it twice.
      if (signal !== "SIGTERM" && Deno.stdin.isTerminal()) return;
      try {
        child.kill(signal);
      } catch {
        // It has ended in the meantime.
      }
    },
  }));
  for (const { signal, handle } of handlers) Deno.addSignalListener(signal, handle);
  const status = await child.status;
  for (const { signal, handle } of handlers) Deno.removeSignalListener(signal, handle);
  // Deno gives 128 + n as the code of a child that died of signal n.
  return status.code;
}

/** The folder that holds deno.json, without a slash at its end. */
export function projectRoot(): string {
  return decodeURIComponent(new URL("..", import.meta.url).pathname).replace(/\/$/, "");
}

async function main(): Promise<number> {
  const [task = "", ...args] = Deno.args;
  const root = projectRoot();
  const map = MAPLESS_TASKS.includes(task) ? "npm" : await chooseMap();
  if (map === "jsr") prepareJsrLock(root);
  const userCwd = Deno.env.get("INIT_CWD") ?? Deno.cwd();
  // The update check would ask dl.deno.land and may write between the lines of the task.
  const env: Record<string, string> = { ...Deno.env.toObject(), DENO_NO_UPDATE_CHECK: "1" };
  // Left there, it would hold for a deno task inside of this task as well, wherever that one is called.
  delete env.INIT_CWD;
  if (!MAPLESS_TASKS.includes(task)) env.DENO_MAP = map;
  let failed = 0;
  for (const step of plan(task, args, { root, userCwd, map })) {
    const code = await run(step, env);
    if (code !== 0) failed ||= code;
    if (code > 128) break;
  }
  return failed;
}

if (import.meta.main) Deno.exit(await main());
