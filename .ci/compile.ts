/**
 * Makes the three executables under dist/, each with the permissions that it needs and no others: first a bundle, one
 * JavaScript file with all packages inside, then `deno compile` of that bundle. Compiled straight from
 * the modules, Deno 2.9 overflows its stack on any CommonJS package (denoland/deno#36746), prom-client for one.
 *
 * `deno compile` takes its runtime, `denort`, from dl.deno.land. Where that is out of reach it says so and
 * leaves the bundles instead: they hold the same code and start by themselves where `deno` is on the PATH.
 *
 * `deno task compile [--bundle] [--out DIR] [--target TRIPLE]`; `--bundle` leaves bundles on purpose.
 */
import { commitOf } from "../cli/commands/version.ts";
import { toAscii } from "./ascii.ts";
import { denoFlags, mapInUse, projectRoot, v8Flags } from "./deno.ts";
import { loadBuiltinsLate } from "./lazy_builtins.ts";

interface Executable {
  name: string;
  entry: string;
  permissions: string[];
}

interface Wishes {
  bundle: boolean;
  out: string;
  target: string | null;
}

const COMMON = ["--allow-net", "--allow-read", "--allow-write", "--allow-env", "--allow-sys"];
export const EXECUTABLES: readonly Executable[] = [
  // The client starts the daemon and the plugins.
  { name: "lacewing", entry: "cli/main.ts", permissions: [...COMMON, "--allow-run"] },
  { name: "lacewing-peer", entry: "peer/main.ts", permissions: COMMON },
  { name: "lacewing-manager", entry: "manager/main.ts", permissions: COMMON },
];

/** A bundle may lie anywhere, so deno.json does not hold for it; the last two see to it that nothing is fetched. */
const BUNDLE_RUN_FLAGS = ["--ext=js", "--no-config", "--no-lock", "--no-prompt", "--no-remote", "--no-npm"];

/** In cli/commands/version.ts, as it stands in the bundle. */
const BUILT_FROM = /^( *(?:const |var )?BUILT_FROM) = ""/m;

const NO_DENORT =
  `Cannot make standalone executables: deno compile needs the runtime "denort", and dl.deno.land, where it
comes from, is out of reach. To make them, take denort of release v${Deno.version.deno} from
https://github.com/denoland/deno/releases (denort-${Deno.build.target}.zip), unpack it, and run
  DENORT_BIN=/path/to/denort deno task compile
Leaving bundles instead: they need deno on the PATH.`;

/**
 * The wishes on the command line.
 * @throws {TypeError} on any other argument
 */
export function readWishes(args: readonly string[], root: string): Wishes {
  const wishes: Wishes = { bundle: false, out: `${root}/dist`, target: null };
  for (let i = 0; i < args.length; i++) {
    const value = args[i + 1];
    if (args[i] === "--bundle") wishes.bundle = true;
    else if (args[i] === "--out" && value) wishes.out = args[++i]!;
    else if (args[i] === "--target" && value) wishes.target = args[++i]!;
    else throw new TypeError(`Cannot read argument "${args[i]}": known are --bundle, --out DIR, --target TRIPLE`);
  }
  return wishes;
}

/** The first line of a bundle: it makes the file a command of its own. */
export function shebang(permissions: readonly string[], settings: readonly string[]): string {
  return `#!/usr/bin/env -S deno run ${[...BUNDLE_RUN_FLAGS, ...settings, ...permissions].join(" ")}\n`;
}

/** Whether the output of a failed `deno compile` says that denort could not be had. */
export function lacksDenort(output: string): boolean {
  return /denort|dl\.deno\.land/i.test(output);
}

async function deno(args: string[], cwd: string): Promise<{ success: boolean; stderr: string }> {
  const { success, stderr } = await new Deno.Command(Deno.execPath(), { args, cwd, stdin: "null", stderr: "piped" })
    .output();
  return { success, stderr: new TextDecoder().decode(stderr) };
}

/** The unstable features that deno.json switches on, as flags. */
async function unstableFlags(root: string): Promise<string[]> {
  const { unstable = [] } = JSON.parse(await Deno.readTextFile(`${root}/deno.json`)) as { unstable?: string[] };
  return unstable.map((feature) => `--unstable-${feature}`);
}

async function bundle({ entry, permissions }: Executable, root: string, path: string): Promise<void> {
  const flags = ["bundle", "--quiet", ...denoFlags(mapInUse(), root), "--platform=deno", `--output=${path}`];
  const { success, stderr } = await deno([...flags, `${root}/${entry}`], root);
  if (!success) throw new Error(`Cannot bundle ${entry}:\n${stderr}`);
  const head = shebang(permissions, [...v8Flags(entry), ...await unstableFlags(root)]);
  const commit = commitOf(new URL(`file://${root}/`)) ?? "";
  const program = (await Deno.readTextFile(path)).replace(BUILT_FROM, (_, name) => `${name} = "${commit}"`);
  await Deno.writeTextFile(path, head + toAscii(loadBuiltinsLate(program)), { mode: 0o755 });
  await Deno.chmod(path, 0o755);
}

/** @returns false when denort cannot be had */
async function compile({ name, entry, permissions }: Executable, root: string, wishes: Wishes): Promise<boolean> {
  const target = wishes.target === null ? [] : [`--target=${wishes.target}`];
  const settings = [
    "--no-config",
    "--no-lock",
    "--no-check",
    "--no-prompt",
    ...v8Flags(entry),
    ...await unstableFlags(root),
  ];
  const paths = [`--output=${wishes.out}/${name}`, `${wishes.out}/${name}.js`];
  const { success, stderr } = await deno(["compile", ...settings, ...target, ...permissions, ...paths], root);
  if (!success && !lacksDenort(stderr)) throw new Error(`Cannot compile ${name}:\n${stderr}`);
  return success;
}

async function main(): Promise<void> {
  const root = projectRoot();
  const wishes = readWishes(Deno.args, root);
  if (!wishes.out.startsWith("/")) wishes.out = `${Deno.cwd()}/${wishes.out}`;
  await Deno.mkdir(wishes.out, { recursive: true });
  let standalone = !wishes.bundle;
  for (const executable of EXECUTABLES) {
    const path = `${wishes.out}/${executable.name}`;
    await bundle(executable, root, `${path}.js`);
    // deno compile does not replace what is not an executable of its own making, such as a bundle.
    await Deno.remove(path).catch(() => {});
    if (standalone && !await compile(executable, root, wishes)) {
      if (wishes.target !== null) throw new Error(NO_DENORT);
      console.error(NO_DENORT);
      standalone = false;
    }
    if (standalone) await Deno.remove(`${path}.js`);
    else await Deno.rename(`${path}.js`, path);
    const { size } = await Deno.stat(path);
    const kind = standalone ? "standalone" : "bundle, needs deno on the PATH";
    console.log(`${path}  ${(size / 2 ** 20).toFixed(1)} MiB  ${kind}`);
  }
}

if (import.meta.main) {
  try {
    await main();
  } catch (error) {
    console.error((error as Error).message);
    Deno.exit(1);
  }
}
