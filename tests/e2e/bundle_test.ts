/**
 * The single-file bundles that `deno task compile` leaves where executables
 * cannot be made: they run by their own first line, from an empty folder, with
 * an empty HOME, and without the project's files.
 */
// covers: .ci/compile.ts
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { dirname } from "node:path";
import { commitOf } from "../../cli/commands/version.ts";
import { Child, type ChildResult, endProcess, runToEnd } from "../testutil/child.ts";
import { fileDigest } from "../testutil/content.ts";
import { startOrigin } from "../testutil/origin.ts";
import { denoRun } from "../testutil/process.ts";

const SIZE = 3_000_001;
const NAMES = ["lacewing", "lacewing-manager", "lacewing-peer"];

/** Bundles in a folder of their own, and places to run them in. */
class Bundles implements AsyncDisposable {
  readonly folder = Deno.makeTempDirSync({ prefix: "lacewing-test-" });
  readonly #children = new Set<Child>();
  readonly #env: Record<string, string>;

  constructor() {
    for (const name of ["dist", "cwd", "home", "state"]) Deno.mkdirSync(this.path(name));
    this.#env = {
      HOME: this.path("home"),
      PATH: `${dirname(Deno.execPath())}:${Deno.env.get("PATH") ?? ""}`,
      // Deno's own cache would be in HOME: the rest of it has to stay empty.
      DENO_DIR: this.path("deno-dir"),
    };
  }

  path(name: string): string {
    return `${this.folder}/${name}`;
  }

  entries(name: string): string[] {
    return [...Deno.readDirSync(this.path(name))].map((entry) => entry.name).sort();
  }

  make(): Promise<ChildResult> {
    return runToEnd([...denoRun(".ci/compile.ts"), "--bundle", "--out", this.path("dist")]);
  }

  run(name: string, ...args: string[]): Promise<ChildResult> {
    return runToEnd(args, { command: this.path(`dist/${name}`), cwd: this.path("cwd"), env: this.#env });
  }

  /** Starts a server and reads its `ready` line; it ends with the bundles. */
  async serve(name: string, ...args: string[]): Promise<{ child: Child; ready: Record<string, string> }> {
    const child = new Child(args, { command: this.path(`dist/${name}`), cwd: this.path("cwd"), env: this.#env });
    this.#children.add(child);
    const line = await child.line((text) => text.startsWith("ready "));
    return { child, ready: JSON.parse(line.slice("ready ".length)) };
  }

  /** Flags of a daemon on free ports, in a work home of that name. */
  daemon(name: string, manager = ""): string[] {
    const config = this.path(`state/${name}.yaml`);
    const lines = [
      "host: { listenIP: 127.0.0.1, advertiseIP: 127.0.0.1 }",
      "upload: { tcpListen: { port: 0 } }",
      "health: { tcpListen: { port: 0 } }",
      ...(manager === "" ? [] : [`scheduler: { manager: { addr: "${manager}" } }`]),
    ];
    Deno.writeTextFileSync(config, lines.join("\n"));
    const home = this.path(`state/${name}`);
    return ["--config", config, "--workhome", home, "--daemon-sock", `${home}.sock`];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) child.kill("SIGTERM");
    await Promise.all([...this.#children].map(({ ended }) => ended));
    await Deno.remove(this.folder, { recursive: true });
  }
}

Deno.test("bundles run on their own: manager, peer and client, and a client that starts its daemon", async (test) => {
  await using bundles = new Bundles();
  await using origin = startOrigin();

  await test.step("deno task compile --bundle makes three programs, and nothing else", async () => {
    const { code, stdout, stderr } = await bundles.make();
    assertEquals([code, bundles.entries("dist")], [0, NAMES], stderr);
    for (const name of NAMES) assertMatch(stdout, new RegExp(`/dist/${name} +[\\d.]+ MiB  bundle, needs deno`));
  });

  await test.step("the client waits for none of node's modules at its start", async () => {
    const text = await Deno.readTextFile(bundles.path("dist/lacewing"));
    assertEquals(text.match(/^import .* from "node:.*$/mg) ?? [], []);
    assertEquals(text.match(/[\u0080-\uffff]/g) ?? [], [], "V8 holds the whole in two bytes a character");
  });

  await test.step("each tells its version and its help", async () => {
    const { version, commit } = JSON.parse((await bundles.run("lacewing", "version", "--json")).stdout);
    assertEquals(
      commit,
      commitOf(new URL("../../", import.meta.url)),
      "the bundle does not know what it was built from",
    );
    for (const name of NAMES) {
      const { code, stdout } = await bundles.run(name, "--help");
      assertEquals([code, stdout.includes(name)], [0, true]);
    }
    for (const name of ["lacewing-peer", "lacewing-manager"]) {
      assertEquals((await bundles.run(name, "--version")).stdout, `${name} ${version}\n`);
    }
    assertEquals((await bundles.run("lacewing", "--outptu", "x")).code, 2);
  });

  await test.step("a file preheated by manager and peer is downloaded by the client", async () => {
    const manager = await bundles.serve("lacewing-manager", ...[
      ...["--listen", "127.0.0.1:0", "--workhome", bundles.path("state/manager"), "--console"],
    ]);
    const { http = "" } = manager.ready;
    for (const path of ["/healthy", "/docs", "/docs/swagger-ui-bundle.js", "/openapi.json", "/metrics"]) {
      const response = await fetch(http + path);
      assert(response.ok && (await response.text()).length > 0, `${path}: ${response.status}`);
    }
    const flags = bundles.daemon("peer", http);
    const peer = await bundles.serve("lacewing-peer", ...flags, "--console");
    await peer.child.line((line) => line.includes("joined a scheduler"));
    const url = origin.put("/f", { size: SIZE });
    const digest = origin.digest("/f");
    const created = await fetch(`${http}/api/v1/jobs`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ type: "preheat", args: { type: "file", url } }),
    });
    const { id } = await created.json();
    await manager.child.line((line) => line.includes('"job ended"') && line.includes('"SUCCESS"'));
    assertEquals((await (await fetch(`${http}/api/v1/jobs/${id}`)).json()).status, "SUCCESS");
    const out = bundles.path("state/out");
    const socket = flags.at(-1)!;
    const result = await bundles.run("lacewing", url, "-O", out, "--digest", digest, "--daemon-sock", socket);
    assertEquals(result.code, 0, result.stderr);
    assertStringIncludes(result.stderr, "from this host, verified sha256:");
    assertEquals([await fileDigest(out), origin.bytesSent("/f")], [digest, SIZE]);
  });

  await test.step("lacewing starts its own daemon, and the next one finds it", async () => {
    const url = origin.put("/g", { size: SIZE, seed: 7 });
    const own = [...bundles.daemon("own"), "--logdir", bundles.path("state/log"), "--verbose"];
    const first = await bundles.run("lacewing", url, "-O", bundles.path("state/g1"), ...own);
    const [, pid] = /started as process (\d+)\n/.exec(first.stderr) ?? [];
    try {
      assert(first.code === 0 && pid !== undefined, first.stderr);
      const command = (await Deno.readTextFile(`/proc/${pid}/cmdline`)).split("\0");
      const [head = ""] = (await Deno.readTextFile(bundles.path("dist/lacewing"))).split("\n", 1);
      const flags = head.split(" ").filter((word) => word.startsWith("--") && !word.startsWith("--allow-"));
      assertEquals(flags.filter((flag) => !command.includes(flag)), [], "the daemon runs otherwise than its bundle");
      const second = await bundles.run("lacewing", url, "-O", bundles.path("state/g2"), ...own);
      assert(second.code === 0 && second.stderr.includes("from this host"), second.stderr);
      for (const name of ["g1", "g2"]) {
        assertEquals(await fileDigest(bundles.path(`state/${name}`)), origin.digest("/g"));
      }
      assertEquals(origin.bytesSent("/g"), SIZE);
      // Plug-ins in TypeScript are loaded by bundles, too.
      await Deno.mkdir(bundles.path("state/own/plugins"), { mode: 0o755 });
      await Deno.copyFile(
        new URL("../testutil/echo_plugin.ts", import.meta.url),
        bundles.path("state/own/plugins/echo.ts"),
      );
      await Deno.chmod(bundles.path("state/own/plugins/echo.ts"), 0o644);
      const echo = await bundles.run("lacewing", "echo://hello", "-O", bundles.path("state/echo"), ...own);
      assertEquals([echo.code, await Deno.readTextFile(bundles.path("state/echo"))], [0, "hello"], echo.stderr);
    } finally {
      if (pid !== undefined) await endProcess(Number(pid));
    }
  });

  await test.step("nothing is left where they ran, or in HOME", () => {
    assertEquals([bundles.entries("cwd"), bundles.entries("home"), bundles.entries("dist")], [[], [], NAMES]);
  });
});
