import { assert, assertEquals, assertThrows } from "@std/assert";
import { type ConfigFlags, isLoopback, loadConfig, parseListen } from "../../../manager/config.ts";
import { LacewingError } from "../../../peer/core/errors.ts";

function load(
  { flags = {}, env = {}, files = {}, writable = () => true }: {
    flags?: ConfigFlags;
    env?: Record<string, string>;
    files?: Record<string, string>;
    writable?: (folder: string) => boolean;
  } = {},
) {
  return loadConfig(flags, { env: (name) => env[name], readFile: (path) => files[path] ?? null, writable });
}

function refused(options: Parameters<typeof load>[0]): string {
  const error = assertThrows(() => load(options), LacewingError) as LacewingError;
  assertEquals(error.code, "config_invalid");
  return error.message;
}

Deno.test("without anything the defaults hold", () => {
  assertEquals(load(), {
    server: { listen: "127.0.0.1:8080", advertiseAddr: "", tls: { cert: "", key: "" } },
    workHome: "/var/lib/lacewing-manager",
    database: { url: "" },
    auth: { disabled: false, joinToken: "" },
    job: {
      timeout: 3_600_000,
      concurrentTasks: 50,
      retries: 3,
      keep: 604_800_000,
      allowPrivateNetworks: null,
      caCerts: [],
    },
    scheduler: { neighbours: 12, sourceConnectionsPerTask: 4, hostTimeout: 10_000 },
  });
});

Deno.test("flags come before the file, the flag's file before the environment's", () => {
  const files = {
    "/a.yaml": "server: { listen: '127.0.0.1:1' }\nworkHome: /home-a\ndatabase: { url: 'sqlite:///a.db' }\n",
    "/b.yaml": "workHome: /home-b\n",
    "/etc/lacewing/manager.yaml": "workHome: /home-etc\n",
  };
  assertEquals(load({ files }).workHome, "/home-etc");
  assertEquals(load({ files, env: { MANAGER_CONFIG: "/b.yaml" } }).workHome, "/home-b");
  const config = load({
    files,
    env: { MANAGER_CONFIG: "/b.yaml" },
    flags: { config: "/a.yaml", listen: "127.0.0.1:2" },
  });
  assertEquals([config.server.listen, config.workHome, config.database.url], [
    "127.0.0.1:2",
    "/home-a",
    "sqlite:///a.db",
  ]);
  const flags = { config: "/a.yaml", workhome: "/flag/", "database-url": "sqlite:///flag.db" };
  assertEquals([load({ files, flags }).workHome, load({ files, flags }).database.url], ["/flag", "sqlite:///flag.db"]);
});

Deno.test("a file that was named and is missing is an error that names it", () => {
  assert(refused({ flags: { config: "/no.yaml" } }).includes("/no.yaml"));
  assert(refused({ env: { MANAGER_CONFIG: "/gone.yaml" } }).includes("/gone.yaml"));
});

Deno.test("a user who may not write the system's folder gets one of his own", () => {
  const writable = () => false;
  assertEquals(load({ writable, env: { XDG_STATE_HOME: "/x" } }).workHome, "/x/lacewing-manager");
  assertEquals(
    load({ writable, env: { HOME: "/h", XDG_STATE_HOME: "relative" } }).workHome,
    "/h/.local/state/lacewing-manager",
  );
  assert(refused({ writable }).includes("--workhome"));
  assertEquals(load({ writable, flags: { workhome: "/w" } }).workHome, "/w");
});

const BAD_FILES: [string, string, string][] = [
  ["an unknown section", "sever: {}", 'did you mean "server"'],
  ["an unknown key", "job: { timout: 1h }", "job.timout: unknown key"],
  ["a duration that is none", "job: { timeout: soon }", "job.timeout"],
  ["a timeout below a second", "job: { timeout: 10ms }", "job.timeout: want at least 1s"],
  ["a number out of bounds", "job: { concurrentTasks: 0 }", "job.concurrentTasks"],
  ["a number that is text", "scheduler: { neighbours: many }", "scheduler.neighbours"],
  ["an address without port", "server: { listen: 127.0.0.1 }", "server.listen"],
  ["a name as address", "server: { listen: 'manager.example.com:80' }", "server.listen"],
  ["an advertised address with a path", "server: { advertiseAddr: 'http://h/x' }", "server.advertiseAddr"],
  ["a certificate without key", "server: { tls: { cert: /c.pem } }", "server.tls"],
  ["PostgreSQL", "database: { url: 'postgres://h/db' }", "not available in this version"],
  ["what is no YAML", "job: [", "not YAML"],
  ["a list", "- a", "/f.yaml"],
];
for (const [what, text, wanted] of BAD_FILES) {
  Deno.test(`a file with ${what} is refused by its path`, () => {
    const message = refused({ flags: { config: "/f.yaml", workhome: "/w" }, files: { "/f.yaml": text } });
    assert(message.includes(wanted), message);
  });
}

Deno.test("another address than loopback wants a join token, or auth switched off", () => {
  for (const listen of ["0.0.0.0:8080", ":8080", "10.0.0.1:80", "[::]:8080"]) {
    assert(refused({ flags: { listen } }).includes("auth.joinToken"), listen);
    for (const auth of ["{ joinToken: x }", "{ disabled: true }"]) {
      const files = { "/f": `auth: ${auth}` };
      assertEquals(load({ flags: { listen, config: "/f" }, files }).server.listen, listen);
    }
  }
  for (const listen of ["localhost:0", "127.1.2.3:80", "[::1]:8080"]) load({ flags: { listen } });
});

for (
  const listen of [
    "",
    "8080",
    "127.0.0.1:",
    "127.0.0.1:70000",
    "300.0.0.1:80",
    "[::g]:80",
    "http://127.0.0.1:80",
    "host:80",
  ]
) {
  Deno.test(`--listen ${JSON.stringify(listen)} is refused`, () => {
    assert(refused({ flags: { listen } }).includes("listen"));
  });
}

Deno.test("parseListen() and isLoopback() read each form", () => {
  assertEquals(parseListen("[::1]:80"), { hostname: "::1", port: 80 });
  assertEquals(parseListen(":80"), { hostname: "0.0.0.0", port: 80 });
  assertEquals([isLoopback("localhost:1"), isLoopback("127.0.0.9:1"), isLoopback("[::1]:1"), isLoopback(":1")], [
    true,
    true,
    true,
    false,
  ]);
});
