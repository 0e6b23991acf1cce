/** The task runner: what it plans, how it asks JSR, and, with real processes in a copy of its own, what a task gets. */
import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { toText } from "@std/streams/to-text";
import { denoFlags, plan, probeJsr, projectRoot, v8Flags } from "../../../.ci/deno.ts";

const ROOT = projectRoot();
const PLACE = { root: ROOT, userCwd: `${ROOT}/tests`, map: "npm" } as const;
const FLAGS = denoFlags("npm", ROOT);
const TEST = ["test", "-A", "--sanitize-ops", "--sanitize-resources", ...FLAGS];

const ENTRIES: Array<[task: string, entry: string]> = [
  ["client", "cli/main.ts"],
  ["daemon", "peer/main.ts"],
  ["manager", "manager/main.ts"],
  ["demo", "tests/demo/main.ts"],
  ["bench", "tests/bench/main.ts"],
];
for (const [task, entry] of ENTRIES) {
  Deno.test(`plan() runs ${entry} for ${task}, where the user stands`, () => {
    const wanted = {
      cwd: PLACE.userCwd,
      args: ["run", "-A", ...v8Flags(entry), ...FLAGS, `${ROOT}/${entry}`, "-O", "out"],
    };
    assertEquals(plan(task, ["-O", "out"], PLACE), [wanted]);
  });
}

Deno.test("only what may be a daemon gets little space for new objects", () => {
  const small = ENTRIES.filter(([, entry]) => v8Flags(entry).join().includes("semi-space")).map(([task]) => task);
  assertEquals(small, ["client", "daemon"]);
});

Deno.test("plan() drops one leading -- and keeps the next", () => {
  assertEquals(plan("client", ["--", "-x", "--", "y"], PLACE)[0]!.args.slice(-3), ["-x", "--", "y"]);
});

Deno.test("plan() tests everything unless a path is given", () => {
  assertEquals(plan("test", ["--filter", "taskId"], PLACE)[0]!.args, [...TEST, "--filter", "taskId", `${ROOT}/tests`]);
});

Deno.test("plan() takes paths from where the user stands", () => {
  assertEquals(plan("test", ["unit/ci", "--quiet"], PLACE)[0]!.args, [...TEST, `${ROOT}/tests/unit/ci`, "--quiet"]);
});

Deno.test("plan() leaves what follows -- to the tests", () => {
  assertEquals(plan("test", ["unit", "--", "unit"], PLACE)[0]!.args, [...TEST, `${ROOT}/tests/unit`, "--", "unit"]);
});

Deno.test("plan() formats, lints, checks and tests for ok, without changing a file", () => {
  const runs = plan("ok", [], PLACE);
  assertEquals(runs.map(({ args }) => args[0]), ["fmt", "lint", "check", "test"]);
  assertEquals(runs[0]!.args.includes("--check"), true);
});

Deno.test("plan() uses neither the npm map nor its lock under the jsr map", () => {
  const args = plan("client", [], { ...PLACE, map: "jsr" })[0]!.args.join(" ");
  assertEquals(/import_map|\/deno\.lock/.test(args), false);
});

Deno.test("plan() throws on a task that is not there", () => {
  assertThrows(() => plan("tset", [], PLACE), RangeError, "tset");
});

const ANSWERS: Array<[claim: string, answer: () => Response, wanted: string | null]> = [
  ["finds JSR where the package list comes", () => Response.json({ versions: {} }), null],
  ["takes a sign-in page for no JSR", () => new Response("<html>"), "it answers 200 without the package list"],
  ["takes an error for no JSR", () => new Response(null, { status: 403 }), "it answers 403 without the package list"],
];
for (const [claim, answer, wanted] of ANSWERS) {
  Deno.test(`probeJsr() ${claim}`, async () => {
    await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, answer);
    assertEquals(await probeJsr(`http://127.0.0.1:${server.addr.port}`), wanted);
  });
}

Deno.test("probeJsr() knows at once when nobody listens", async () => {
  assertEquals(await probeJsr("http://127.0.0.1:1"), "no connection");
});

/** A project of one file as the client, with the real task runner. */
async function project(main: string): Promise<{ root: string } & AsyncDisposable> {
  const root = await Deno.realPath(await Deno.makeTempDir());
  await Deno.mkdir(`${root}/.ci`);
  await Deno.mkdir(`${root}/cli`);
  await Deno.mkdir(`${root}/here`);
  await Deno.copyFile(`${ROOT}/.ci/deno.ts`, `${root}/.ci/deno.ts`);
  const { tasks } = JSON.parse(await Deno.readTextFile(`${ROOT}/deno.json`));
  await Deno.writeTextFile(
    `${root}/deno.json`,
    JSON.stringify({ tasks, imports: { "@std/yaml": "jsr:@std/yaml@^1" } }),
  );
  await Deno.writeTextFile(`${root}/import_map.npm.json`, '{"imports":{"@std/yaml":"./yaml.ts"}}');
  await Deno.writeTextFile(`${root}/yaml.ts`, 'export const from = "npm";');
  await Deno.writeTextFile(`${root}/cli/main.ts`, main);
  return { root, [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }) };
}

function client(root: string, args: string[], env: Record<string, string> = { DENO_MAP: "npm" }): Deno.ChildProcess {
  const { DENO_MAP: _, ...inherited } = Deno.env.toObject();
  return new Deno.Command(Deno.execPath(), {
    args: ["task", "client", ...args],
    cwd: `${root}/here`,
    clearEnv: true,
    env: { ...inherited, ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
}

Deno.test("a task stands where the user stands, and has stdout for itself", async () => {
  await using here = await project("console.log(JSON.stringify([Deno.cwd(), Deno.args, Deno.env.get('DENO_MAP')]));");
  const { code, stdout } = await client(here.root, ["--", "-O", "a b", "*"]).output();
  assertEquals(JSON.parse(new TextDecoder().decode(stdout)), [`${here.root}/here`, ["-O", "a b", "*"], "npm"]);
  assertEquals(code, 0);
});

Deno.test("the exit code of a task comes back", async () => {
  await using here = await project("Deno.exit(69);");
  assertEquals((await client(here.root, []).output()).code, 69);
});

Deno.test("a task that dies of signal 9 exits with 137", async () => {
  await using here = await project(
    "Deno.kill(Deno.pid, 'SIGKILL'); await new Promise(() => setTimeout(() => {}, 9e6));",
  );
  assertEquals((await client(here.root, []).output()).code, 137);
});

for (const [signal, code] of [["SIGTERM", 3], ["SIGINT", 2]] as const) {
  Deno.test(`${signal} reaches the task once, which ends in its own way`, async () => {
    await using here = await project(`
      let count = 0;
      Deno.addSignalListener("${signal}", () => { count++; setTimeout(() => Deno.exit(count === 1 ? ${code} : 99), 200); });
      console.log("ready");
      setInterval(() => {}, 1000);
    `);
    const child = client(here.root, []);
    const reader = child.stdout.getReader();
    assertEquals(new TextDecoder().decode((await reader.read()).value), "ready\n");
    child.kill(signal);
    assertEquals((await child.status).code, code);
    await reader.cancel();
    await child.stderr.cancel();
  });
}

Deno.test("a task says on stderr that JSR is out of reach, and takes the npm map", async () => {
  await using here = await project('import { from } from "@std/yaml"; console.log(from);');
  const { stdout, stderr } = await client(here.root, [], { JSR_URL: "http://127.0.0.1:1" }).output();
  assertEquals(new TextDecoder().decode(stdout), "npm\n");
  assertStringIncludes(new TextDecoder().decode(stderr), "out of reach (no connection), taking import_map.npm.json");
});

Deno.test("under the jsr map deno.lock stays as it is, and its copy holds the JSR packages", async () => {
  await using here = await project('import { from } from "@std/yaml"; console.log(from);');
  const source = 'export const from = "jsr";';
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(source));
  const checksum = `sha256-${new Uint8Array(digest).toHex()}`;
  const pages: Record<string, () => Response> = {
    "/@std/assert/meta.json": () => Response.json({ versions: {} }),
    "/@std/yaml/meta.json": () => Response.json({ scope: "std", name: "yaml", versions: { "1.0.0": {} } }),
    "/@std/yaml/1.0.0_meta.json": () =>
      Response.json({ exports: { ".": "./mod.ts" }, manifest: { "/mod.ts": { size: source.length, checksum } } }),
    "/@std/yaml/1.0.0/mod.ts": () => new Response(source, { headers: { "content-type": "text/typescript" } }),
  };
  await using server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen() {} },
    ({ url }) => pages[new URL(url).pathname]?.() ?? new Response(null, { status: 404 }),
  );
  const lock = '{\n  "version": "5"\n}\n';
  await Deno.writeTextFile(`${here.root}/deno.lock`, lock);
  const env = { JSR_URL: `http://127.0.0.1:${server.addr.port}/`, DENO_DIR: `${here.root}/cache` };
  const child = client(here.root, [], env);
  const [stdout, stderr] = await Promise.all([toText(child.stdout), toText(child.stderr)]);
  assertEquals(stdout, "jsr\n", stderr);
  assertStringIncludes(stderr, "answers, taking the import map of deno.json");
  assertEquals(await Deno.readTextFile(`${here.root}/deno.lock`), lock);
  assertStringIncludes(await Deno.readTextFile(`${here.root}/.deno.jsr.lock`), "@std/yaml@1.0.0");
  await child.status;
});
