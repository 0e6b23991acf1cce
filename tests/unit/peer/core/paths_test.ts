/** The rules of default places, over invented machines. */
import { assertEquals } from "@std/assert";
import {
  defaultLogDir,
  defaultSocket,
  defaultWorkHome,
  type PathFacts,
  socketCandidates,
} from "../../../../peer/core/paths.ts";

function facts(writable: string[], env: Record<string, string> = {}, platform = "linux"): PathFacts {
  return { platform, uid: 1000, env: (name) => env[name], writable: (folder) => writable.includes(folder) };
}
const SYSTEM = ["/var/run", "/var/lib/lacewing", "/var/log/lacewing/client", "/var/log/lacewing/daemon", "/tmp"];

const SOCKETS: [string, PathFacts, string, boolean][] = [
  ["the system's folder where it can be written", facts(SYSTEM), "/var/run/daemon.sock", false],
  ["/tmp on macOS", facts(SYSTEM, {}, "darwin"), "/tmp/daemon.sock", false],
  [
    "the runtime folder of the user",
    facts([], { XDG_RUNTIME_DIR: "/run/user/1" }),
    "/run/user/1/lacewing/daemon.sock",
    true,
  ],
  [
    "a trailing slash removed",
    facts([], { XDG_RUNTIME_DIR: "/run/user/1/" }),
    "/run/user/1/lacewing/daemon.sock",
    true,
  ],
  ["a folder of /tmp by user id without a runtime folder", facts([]), "/tmp/lacewing-1000/daemon.sock", true],
  ["no relative runtime folder", facts([], { XDG_RUNTIME_DIR: "run" }), "/tmp/lacewing-1000/daemon.sock", true],
  ["no empty runtime folder", facts([], { XDG_RUNTIME_DIR: "" }), "/tmp/lacewing-1000/daemon.sock", true],
];
for (const [claim, given, path, fallback] of SOCKETS) {
  Deno.test(`defaultSocket() takes ${claim}`, () => assertEquals(defaultSocket(given), { path, fallback }));
}

Deno.test("socketCandidates() looks for a system daemon before the user's own", () => {
  assertEquals(socketCandidates(facts([])), ["/var/run/daemon.sock", "/tmp/lacewing-1000/daemon.sock"]);
  assertEquals(socketCandidates(facts(SYSTEM)), ["/var/run/daemon.sock"]);
});

Deno.test("work home and logs are the system's folders where they can be written", () => {
  assertEquals(defaultWorkHome(facts(SYSTEM)), "/var/lib/lacewing");
  assertEquals(defaultLogDir(facts(SYSTEM), "client"), "/var/log/lacewing/client");
  assertEquals(defaultLogDir(facts(SYSTEM), "daemon"), "/var/log/lacewing/daemon");
});

const STATES: [string, Record<string, string>, string][] = [
  ["XDG_STATE_HOME", { XDG_STATE_HOME: "/s", HOME: "/home/u" }, "/s/lacewing"],
  ["the home folder", { HOME: "/home/u" }, "/home/u/.local/state/lacewing"],
  ["/tmp without a home", {}, "/tmp/lacewing-1000"],
];
for (const [claim, env, state] of STATES) {
  Deno.test(`work home and logs go below ${claim} where the system's cannot be written`, () => {
    assertEquals(defaultWorkHome(facts([], env)), state);
    assertEquals(defaultLogDir(facts([], env), "client"), `${state}/client`);
  });
}
