/** Finding and starting a daemon, over invented sockets and processes. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import type { Clock } from "../../../peer/core/clock.ts";
import { silentLogger } from "../../../peer/core/log.ts";
import type { PathFacts } from "../../../peer/core/paths.ts";
import {
  daemonArgs,
  findDaemon,
  type FindOptions,
  selfCommand,
  type StartedDaemon,
} from "../../../cli/daemon_process.ts";
import { v8Flags } from "../../../.ci/deno.ts";
import type { DaemonSettings } from "../../../cli/settings.ts";

const NOTHING: DaemonSettings = {
  socket: null,
  config: null,
  workHome: null,
  logDir: null,
  console: false,
  verbose: false,
  jaeger: null,
};
const FACTS: PathFacts = { platform: "linux", uid: 0, env: () => undefined, writable: () => true };

/** A clock on which sleeping is what makes time pass. */
function fastClock(): Clock & { sleeps: number[] } {
  let nowMs = 0;
  const sleeps: number[] = [];
  return {
    sleeps,
    nowMs: () => nowMs,
    sleep: (ms) => {
      sleeps.push(ms);
      nowMs += ms;
      return Promise.resolve();
    },
  };
}

interface Machine {
  /** Sockets that answer from the n-th try on. */
  answers?: Record<string, number>;
  /** The started daemon's exit code, from the n-th look on. */
  exit?: { code: number; after: number };
  says?: string;
  startFails?: string;
}

function invent({ answers = {}, exit, says = "", startFails }: Machine = {}) {
  const tried: string[] = [];
  const started: string[][] = [];
  const clock = fastClock();
  let [looks, disposals] = [0, 0];
  const options: FindOptions<string> = {
    facts: FACTS,
    cwd: "/work",
    clock,
    log: silentLogger,
    signal: new AbortController().signal,
    connect: (socket) => {
      tried.push(socket);
      const from = answers[socket];
      const count = tried.filter((other) => other === socket).length;
      return from !== undefined && count >= from
        ? Promise.resolve(`to ${socket}`)
        : Promise.reject(new Error("nobody"));
    },
    start: (args) => {
      if (startFails !== undefined) return Promise.reject(new Error(startFails));
      started.push([...args]);
      const daemon: StartedDaemon = {
        pid: 77,
        exitCode: () => exit !== undefined && ++looks >= exit.after ? exit.code : null,
        output: () => says,
        [Symbol.dispose]: () => void disposals++,
      };
      return Promise.resolve(daemon);
    },
  };
  return { options, tried, started, clock, disposals: () => disposals };
}

Deno.test("a daemon that runs is taken, and none is started", async () => {
  const { options, started } = invent({ answers: { "/var/run/daemon.sock": 1 } });
  const found = await findDaemon(NOTHING, options);
  assertEquals(found, { connection: "to /var/run/daemon.sock", socket: "/var/run/daemon.sock", startedPid: null });
  assertEquals(started, []);
});

Deno.test("a socket that was given is the only one tried", async () => {
  const { options, tried } = invent({ answers: { "/work/my.sock": 1, "/var/run/daemon.sock": 1 } });
  const found = await findDaemon({ ...NOTHING, socket: "my.sock" }, options);
  assertEquals([found.connection, tried], ["to /work/my.sock", ["/work/my.sock"]]);
});

Deno.test("a daemon is started where none runs, and asked until it answers", async () => {
  const { options, started, clock, disposals } = invent({ answers: { "/s": 5 } });
  const found = await findDaemon({ ...NOTHING, socket: "/s" }, options);
  assertEquals(found, { connection: "to /s", socket: "/s", startedPid: 77 });
  assertEquals(started, [["--daemon-sock", "/s"]]);
  assertEquals([clock.sleeps[0], disposals()], [5, 1]);
  assert(clock.sleeps.every((ms) => ms <= 50));
});

Deno.test("a daemon that never answers is given up after 5 s", async () => {
  const { options, clock, disposals } = invent();
  const found = await findDaemon(NOTHING, options);
  assertEquals(found.connection, null);
  assert(found.connection === null && found.reason.includes("5 s"));
  assert(clock.nowMs() >= 5000 && clock.nowMs() < 5100);
  assertEquals(disposals(), 1);
});

Deno.test("a daemon that ends at once is given up at once, with what it said", async () => {
  const says = "warning\nlacewing-peer: Cannot use c.yaml: unknown key\n";
  const { options, clock } = invent({ exit: { code: 2, after: 2 }, says });
  const found = await findDaemon(NOTHING, options);
  assert(found.connection === null && found.reason === "the daemon says: Cannot use c.yaml: unknown key");
  assert(clock.nowMs() < 200);
});

Deno.test("a daemon that found another one is no reason to give up: the other will answer", async () => {
  const { options } = invent({ exit: { code: 1, after: 1 }, answers: { "/var/run/daemon.sock": 9 } });
  assertEquals((await findDaemon(NOTHING, options)).connection, "to /var/run/daemon.sock");
});

Deno.test("where the other one listens elsewhere, that is said after 2 s", async () => {
  const says = "lacewing-peer: Cannot start: a daemon (process 7) already runs on work home /w\n";
  const { options, clock } = invent({ exit: { code: 1, after: 10 }, says });
  const found = await findDaemon(NOTHING, options);
  assert(found.connection === null && found.reason.includes("process 7"));
  assert(clock.nowMs() >= 2000 && clock.nowMs() < 2200, String(clock.nowMs()));
});

Deno.test("a daemon that cannot be started is a reason, not a failure", async () => {
  const { options } = invent({ startFails: "no such program" });
  const found = await findDaemon(NOTHING, options);
  assert(found.connection === null && found.reason === "no such program");
});

Deno.test("none is started where its socket could not be", async () => {
  const { options, started } = invent({ answers: { "/var/run/daemon.sock": 2 } });
  const facts = { ...FACTS, writable: (folder: string) => folder !== "/closed" };
  const found = await findDaemon({ ...NOTHING, socket: "/closed/d.sock" }, { ...options, facts });
  assert(found.connection === null && found.reason.startsWith("no socket can be made in /closed;"));
  assertEquals(started, []);
});

Deno.test("a command that is stopped meanwhile starts nothing more", async () => {
  const stop = new AbortController();
  const { options, started } = invent();
  stop.abort(new Error("stopped"));
  await assertRejects(() => findDaemon(NOTHING, { ...options, signal: stop.signal }), Error, "stopped");
  assertEquals(started, []);
});

Deno.test("daemonArgs() hands on the client's files as absolute paths", () => {
  const settings = { ...NOTHING, config: "c.yaml", workHome: "/w", logDir: "logs", verbose: true, jaeger: "http://c" };
  assertEquals(daemonArgs(settings, { socket: "/s", cwd: "/work" }), [
    ...["--daemon-sock", "/s", "--config", "/work/c.yaml", "--workhome", "/w", "--logdir", "/work/logs"],
    ...["--verbose", "--jaeger", "http://c"],
  ]);
});

Deno.test("selfCommand() runs this very program", async () => {
  const { command, args } = selfCommand();
  const { code, stdout } = await new Deno.Command(command, { args: [...args, "version"], stdin: "null" }).output();
  assertEquals([code, new TextDecoder().decode(stdout).startsWith("lacewing ")], [0, true]);
  for (const flag of v8Flags("cli/main.ts")) assertEquals(args.includes(flag), true, "as the daemon task runs it");
});
