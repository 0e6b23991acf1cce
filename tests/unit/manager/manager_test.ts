// covers: manager/main.ts
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { managerConfig } from "../../../manager/config.ts";
import { startManager } from "../../../manager/manager.ts";
import { LacewingError } from "../../../peer/core/errors.ts";
import { createLogger, silentLogger } from "../../../peer/core/log.ts";
import { runToEnd } from "../../testutil/child.ts";
import { denoRun, spawnManager } from "../../testutil/process.ts";

async function withHome(use: (home: string) => Promise<void>) {
  const home = await Deno.makeTempDir();
  try {
    await use(home);
  } finally {
    await Deno.remove(home, { recursive: true });
  }
}

/** A configuration in a temporary work home, on a free port of an address. */
function configOf(home: string, sections: Record<string, unknown> = {}, listen = "127.0.0.1:0") {
  const { server = {}, ...others } = sections;
  return managerConfig.parse({ workHome: home, server: { listen, ...server as object }, ...others });
}

const HELLO = {
  type: "hello",
  v: 1,
  host: {
    id: "host-1",
    hostname: "h",
    ip: "127.0.0.1",
    upload_port: 1,
    type: "normal",
    platform: "linux/amd64",
    version: "0",
  },
};

/** Says hello as a host does. @returns the first answer, or the close code */
async function sayHello(url: string, token?: string): Promise<string> {
  const socket = new WebSocket(url);
  const said = Promise.withResolvers<string>();
  socket.onopen = () =>
    socket.send(JSON.stringify({ ...HELLO, ...(token === undefined ? {} : { join_token: token }) }));
  socket.onmessage = ({ data }) => said.resolve(JSON.parse(data).type);
  const closed = new Promise<void>((resolve) => socket.onclose = () => resolve());
  const answer = await Promise.race([said.promise, closed.then(() => "closed")]);
  socket.close();
  await closed;
  return answer;
}

Deno.test("a manager serves its API and takes hosts where it says", () =>
  withHome(async (home) => {
    await using manager = await startManager(configOf(home), { log: silentLogger });
    assertEquals(await (await fetch(`${manager.http}/healthy`)).text(), "OK");
    const [scheduler] = await (await fetch(`${manager.http}/api/v1/schedulers`)).json();
    assertMatch(scheduler.url, /^ws:\/\/127\.0\.0\.1:\d+\/api\/v1\/scheduler\/connect$/);
    const socket = new WebSocket(scheduler.url);
    const welcome = Promise.withResolvers<string>();
    socket.onopen = () => socket.send(JSON.stringify(HELLO));
    socket.onmessage = ({ data }) => welcome.resolve(data);
    assertEquals(JSON.parse(await welcome.promise).cluster_id, 1);
    const peers = await (await fetch(`${manager.http}/api/v1/peers`)).json();
    assertEquals(peers.map(({ id, cluster_id }: { id: string; cluster_id: number }) => [id, cluster_id]), [[
      "host-1",
      1,
    ]]);
    const closed = new Promise((resolve) => socket.onclose = resolve);
    socket.close();
    await closed;
  }));

Deno.test("a stop ends open event streams and host connections, and keeps the job pending", () =>
  withHome(async (home) => {
    const config = configOf(home);
    const manager = await startManager(config, { log: silentLogger });
    const json = { method: "POST", headers: { "Content-Type": "application/json" } };
    const body = JSON.stringify({ type: "preheat", args: { type: "file", url: "http://127.0.0.1:1/a" } });
    await (await fetch(`${manager.http}/api/v1/jobs`, { ...json, body })).body?.cancel();
    const events = await fetch(`${manager.http}/api/v1/jobs/1/events`);
    const text = events.text();
    const socket = new WebSocket(manager.http.replace("http", "ws") + "/api/v1/scheduler/connect");
    await new Promise((resolve) => socket.onopen = resolve);
    const closed = new Promise((resolve) => socket.onclose = resolve);
    await manager[Symbol.asyncDispose]();
    assertMatch(await text, /^event: progress/);
    await closed;
    await using again = await startManager(config, { log: silentLogger });
    assertEquals((await (await fetch(`${again.http}/api/v1/jobs/1`)).json()).status, "PENDING");
  }));

Deno.test("a second manager on the work home, the database or the address says so", () =>
  withHome(async (home) => {
    const config = configOf(home);
    await using manager = await startManager(config, { log: silentLogger });
    const refused = async (other: typeof config, wanted: string) => {
      const error = await assertRejects(() => startManager(other, { log: silentLogger }), LacewingError, wanted);
      assertEquals((error as LacewingError).code, "already_running");
    };
    await refused(config, `work home ${home}`);
    await refused(configOf(`${home}/b`, { database: { url: `sqlite://${home}/manager.db` } }), "database");
    await refused(configOf(`${home}/c`, {}, new URL(manager.http).host), "in use");
  }));

Deno.test("beyond loopback tokens are needed, by people and by hosts", () =>
  withHome(async (home) => {
    const config = configOf(home, { auth: { joinToken: "join-me" } }, "0.0.0.0:0");
    const lines: string[] = [];
    await using manager = await startManager(config, { log: createLogger((line) => lines.push(line)) });
    const token = (await Deno.readTextFile(`${home}/admin_token`)).trim();
    assert(lines.some((line) => line.includes("admin_token")) && !lines.some((line) => line.includes(token)));
    const base = manager.http.replace("0.0.0.0", "127.0.0.1");
    const get = async (path: string, headers: Record<string, string> = {}) => {
      const response = await fetch(base + path, { headers });
      await response.body?.cancel();
      return response.status;
    };
    assertEquals([await get("/healthy"), await get("/api/v1/jobs")], [200, 401]);
    assertEquals(await get("/api/v1/jobs", { Authorization: `Bearer ${token}` }), 200);
    assertEquals(await get("/api/v1/schedulers", { Authorization: "Bearer join-me" }), 200);
    const url = `${base.replace("http", "ws")}/api/v1/scheduler/connect`;
    assertEquals(await sayHello(url, "join-me"), "welcome");
    assert(await sayHello(url, "wrong") !== "welcome");
    assert(await sayHello(url) !== "welcome");
  }));

Deno.test("auth that is switched off is warned of at each start", () =>
  withHome(async (home) => {
    const lines: string[] = [];
    const config = configOf(home, { auth: { disabled: true } }, "0.0.0.0:0");
    await using manager = await startManager(config, { log: createLogger((line) => lines.push(line)) });
    assert(lines.some((line) => line.includes('"level":"warn"') && line.includes("auth.disabled")));
    const response = await fetch(`${manager.http.replace("0.0.0.0", "127.0.0.1")}/api/v1/jobs`);
    assertEquals([response.status, await response.json()], [200, []]);
  }));

Deno.test("with a certificate it serves https, and hosts are sent to wss", () =>
  withHome(async (home) => {
    const openssl = new Deno.Command("openssl", {
      args:
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:localhost,IP:127.0.0.1"
          .split(" ").concat("-keyout", `${home}/key.pem`, "-out", `${home}/cert.pem`),
      stderr: "null",
    });
    assertEquals((await openssl.output()).code, 0);
    const config = configOf(home, { server: { tls: { cert: `${home}/cert.pem`, key: `${home}/key.pem` } } });
    await using manager = await startManager(config, { log: silentLogger });
    const port = new URL(manager.http).port;
    using client = Deno.createHttpClient({ caCerts: [await Deno.readTextFile(`${home}/cert.pem`)] });
    const list = await (await fetch(`https://localhost:${port}/api/v1/schedulers`, { client })).json();
    assertEquals(list[0].url, `wss://localhost:${port}/api/v1/scheduler/connect`);
    assertMatch(manager.http, /^https:/);
  }));

for (
  const [what, sections, wanted] of [
    ["a certificate that is not there", { server: { tls: { cert: "/no/cert", key: "/no/key" } } }, "server.tls.cert"],
    ["an authority that is not there", { job: { caCerts: ["/no/ca"] } }, "job.caCerts"],
    ["an authority that is no certificate", { job: { caCerts: ["/dev/null"] } }, "job.caCerts: /dev/null holds no"],
    ["an address of another machine", { server: { listen: "192.0.2.1:0" }, auth: { joinToken: "x" } }, "192.0.2.1"],
    ["no authentication", { server: { listen: "0.0.0.0:0" } }, "auth.joinToken"],
  ] as const
) {
  Deno.test(`a start with ${what} is refused, and leaves no lock behind`, () =>
    withHome(async (home) => {
      const error = await assertRejects(
        () => startManager(configOf(home, sections), { log: silentLogger }),
        LacewingError,
        wanted,
      );
      assertEquals((error as LacewingError).code, "config_invalid");
      await using _manager = await startManager(configOf(home), { log: silentLogger });
    }));
}

Deno.test("an advertised address is where hosts are sent", () =>
  withHome(async (home) => {
    for (
      const [advertiseAddr, url] of [["m.example.com:80", "ws://m.example.com/"], [
        "https://m.example.com",
        "wss://m.example.com/",
      ]]
    ) {
      await using manager = await startManager(configOf(home, { server: { advertiseAddr } }), { log: silentLogger });
      const [scheduler] = await (await fetch(`${manager.http}/api/v1/schedulers`)).json();
      assertEquals(scheduler.url, `${url}api/v1/scheduler/connect`);
    }
  }));

Deno.test("lacewing-manager: first line ready, a second one leaves with 1, SIGTERM ends it with 0", async () => {
  await using manager = await spawnManager();
  assertMatch(manager.log().split("\n")[0]!, /^ready \{"http":"http:\/\/127\.0\.0\.1:\d+"\}$/);
  const second = await runToEnd([
    ...denoRun("manager/main.ts"),
    "--workhome",
    manager.folder,
    "--listen",
    "127.0.0.1:0",
  ]);
  assertEquals(second.code, 1);
  assertMatch(second.stderr, new RegExp(`another manager \\(process ${manager.pid}\\)`));
  assertEquals(second.stdout, "");
  assertEquals(await manager.stop(), 0);
});

Deno.test("lacewing-manager: a job that was answered is there after SIGKILL", async () => {
  await using manager = await spawnManager({ config: { scheduler: { hostTimeout: "1s" } } });
  const args = { type: "file", url: "http://127.0.0.1:1/a" };
  assertEquals((await manager.api("POST", "/api/v1/jobs", { type: "preheat", args })).status, 200);
  await manager.kill("SIGKILL");
  await manager.start();
  const events = await manager.api("GET", "/api/v1/jobs/1/events");
  assertMatch(String(events.body), /event: outcome\n.*"status":"FAILURE".*no live host/);
});

Deno.test("lacewing-manager: records go to the log folder, with --console to stdout", () =>
  withHome(async (home) => {
    const config = `${home}/m.yaml`;
    await Deno.writeTextFile(config, "server: { listen: '192.0.2.1:1' }\nauth: { joinToken: x }\n");
    const args = [...denoRun("manager/main.ts"), "--config", config, "--workhome", home];
    const quiet = await runToEnd([...args, "--logdir", `${home}/l`]);
    assertEquals([quiet.code, quiet.stdout], [2, ""]);
    assertMatch(await Deno.readTextFile(`${home}/l/manager.log`), /"level":"error".*192\.0\.2\.1/);
    const loud = await runToEnd([...args, "--console"]);
    assertMatch(loud.stdout, /^\{"time".*192\.0\.2\.1/);
  }));

const USAGE: [string[], RegExp][] = [
  [["--lisen", "127.0.0.1:0"], /did you mean --listen/],
  [["--listen"], /--listen: it needs a value/],
  [["--listen", "nowhere"], /--listen.*HOST:PORT/],
  [["--config", "/no/such.yaml"], /no such file/],
  [["--database-url", "postgres://u:secret@h/d"], /PostgreSQL is not available/],
  [["--role", "api"], /splitting the roles is not available/],
  [["--role", "api,cook"], /"cook" is none of/],
  [["serve"], /no such command/],
  [["tokens", "list"], /did you mean token/],
  [["--name", "x"], /belongs to token create/],
];
Deno.test("lacewing-manager: wrong usage ends with 2, says what is wrong, and starts nothing", () =>
  withHome(async (home) => {
    for (const [args, wanted] of USAGE) {
      const { code, stdout, stderr } = await runToEnd([
        ...denoRun("manager/main.ts"),
        "--workhome",
        `${home}/w`,
        ...args,
      ]);
      assertEquals([code, stdout], [2, ""], `${args.join(" ")}: ${stderr}`);
      assertMatch(stderr, wanted);
      assert(!stderr.includes("secret"));
    }
    await assertRejects(() => Deno.stat(`${home}/w`), Deno.errors.NotFound);
  }));

Deno.test("lacewing-manager: help, version and commands print and end with 0", () =>
  withHome(async (home) => {
    const run = async (...args: string[]) =>
      await runToEnd([...denoRun("manager/main.ts"), "--workhome", home, ...args]);
    assertMatch((await run("--help")).stdout, /--database-url/);
    assertMatch((await run("--version")).stdout, /^lacewing-manager \d+\.\d+\.\d+\n$/);
    assertMatch((await run("token", "create", "--name", "ci", "--scopes", "job")).stdout, /^lwp_\S+\n$/);
    const { code, stdout } = await runToEnd([...denoRun("manager/main.ts"), "--", "token", "list", "--workhome", home]);
    assertEquals([code, JSON.parse(stdout).name], [0, "ci"]);
  }));
