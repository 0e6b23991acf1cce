import { assert, assertEquals, assertThrows } from "@std/assert";
import {
  defaultDaemonConfig,
  fixedSchedulerUrls,
  parseDaemonConfig,
  validateDaemonConfig,
} from "../../../peer/config.ts";
import { LacewingError } from "../../../peer/core/errors.ts";

const GIB = 2 ** 30;

/** A configuration with every key of INTERFACE section 3 that works in this version. */
const COMPLETE = `
aliveTime: 10m
gcInterval: 30s
workHome: /var/lib/lacewing
dataDir: /data
logDir: /log
host: { hostname: h, advertiseIP: 10.0.0.1, listenIP: 10.0.0.2, idc: rack, location: "a|b" }
scheduler:
  manager:
    enable: false
    addr: "https://manager:8080"
    joinToken: t
    refreshInterval: 5s
    seedPeer: { enable: true, clusterID: 7 }
  netAddrs: ["10.0.0.3:8002"]
  disableAutoBackSource: true
download:
  totalRateLimit: 100Mi
  perPeerRateLimit: 1MiB
  concurrentPieceCount: 256
  prefetch: false
  source: { caCerts: [/ca.pem], insecure: true, maxConnections: 64, allowPrivateNetworks: false, idleTimeout: 5s }
upload: { rateLimit: 1024, tcpListen: { port: 0 }, concurrent: 1 }
storage: { taskExpireTime: 7d, diskGCThreshold: 100, diskGCThresholdPercent: 1, keepStorage: false }
proxy:
  tcpListen: { port: 0 }
  listenIP: 127.0.0.1
  defaultFilter: a&b
  defaultTag: t
  registryMirror: { url: "http://mirror", dynamic: false, insecure: true, certs: [/c.pem], authorize: false }
  proxies: [ { regx: "blobs/sha256.*", useHTTPS: true, direct: true, redirect: "host" } ]
  whiteList: [ { host: h } ]
  basicAuth: { username: u, password: p }
health: { tcpListen: { port: 65535 } }
security: { tls: { enable: false, caCert: "", cert: "", key: "" } }
`;

function refused(text: string): string {
  const error = assertThrows(() => parseDaemonConfig(text, "/c.yaml"), LacewingError) as LacewingError;
  assertEquals(error.code, "config_invalid");
  assert(error.message.includes("/c.yaml"), error.message);
  return error.message;
}

Deno.test("an empty file, and none at all, give the defaults of INTERFACE section 3", () => {
  const config = parseDaemonConfig("", "/c.yaml");
  assertEquals(config, defaultDaemonConfig());
  assertEquals(config.aliveTime, undefined);
  assertEquals(config.gcInterval, 60_000);
  assertEquals(config.host, { hostname: "", advertiseIP: "", listenIP: "0.0.0.0", idc: "", location: "" });
  assertEquals(config.scheduler, {
    manager: { enable: true, joinToken: "", refreshInterval: 60_000, seedPeer: { enable: false, clusterID: 1 } },
    netAddrs: [],
    disableAutoBackSource: false,
  });
  assertEquals(config.download, {
    totalRateLimit: 0,
    perPeerRateLimit: 0,
    concurrentPieceCount: 8,
    prefetch: false,
    source: { caCerts: [], insecure: false, maxConnections: 4, allowPrivateNetworks: true, idleTimeout: 30_000 },
  });
  assertEquals(config.upload, { rateLimit: 0, tcpListen: { port: 65002 }, concurrent: 16 });
  assertEquals(config.storage, {
    taskExpireTime: 21_600_000,
    diskGCThreshold: 50 * GIB,
    diskGCThresholdPercent: 90,
    keepStorage: true,
  });
  assertEquals(config.health, { tcpListen: { port: 40901 } });
  assertEquals(config.proxy, undefined, "off without a proxy section");
});

Deno.test("every key is read, sizes as bytes and durations as milliseconds", () => {
  const config = parseDaemonConfig(COMPLETE, "/c.yaml");
  assertEquals([config.aliveTime, config.gcInterval], [600_000, 30_000]);
  assertEquals([config.workHome, config.dataDir, config.logDir], ["/var/lib/lacewing", "/data", "/log"]);
  assertEquals(config.host, {
    hostname: "h",
    advertiseIP: "10.0.0.1",
    listenIP: "10.0.0.2",
    idc: "rack",
    location: "a|b",
  });
  assertEquals(config.scheduler, {
    manager: {
      enable: false,
      addr: "https://manager:8080",
      joinToken: "t",
      refreshInterval: 5_000,
      seedPeer: { enable: true, clusterID: 7 },
    },
    netAddrs: ["10.0.0.3:8002"],
    disableAutoBackSource: true,
  });
  assertEquals(config.download, {
    totalRateLimit: 100 * 2 ** 20,
    perPeerRateLimit: 2 ** 20,
    concurrentPieceCount: 256,
    prefetch: false,
    source: {
      caCerts: ["/ca.pem"],
      insecure: true,
      maxConnections: 64,
      allowPrivateNetworks: false,
      idleTimeout: 5_000,
    },
  });
  assertEquals(config.upload, { rateLimit: 1024, tcpListen: { port: 0 }, concurrent: 1 });
  assertEquals(config.storage, {
    taskExpireTime: 604_800_000,
    diskGCThreshold: 100,
    diskGCThresholdPercent: 1,
    keepStorage: false,
  });
  assertEquals(config.health.tcpListen.port, 65535);
});

const BAD: [what: string, text: string, wanted: string][] = [
  ["an unknown section", "downlod: {}", 'downlod: unknown key; did you mean "download"?'],
  ["an unknown key", "upload: { concurent: 3 }", 'upload.concurent: unknown key; did you mean "concurrent"?'],
  [
    "a key in another case",
    "host: { advertiseIp: 1.2.3.4 }",
    'host.advertiseIp: unknown key; did you mean "advertiseIP"?',
  ],
  [
    "a deep unknown key",
    "scheduler: { manager: { seedPeer: { clusterId: 1 } } }",
    'scheduler.manager.seedPeer.clusterId: unknown key; did you mean "clusterID"?',
  ],
  ["a key like no other", "host: { zzzzzzzzzz: 1 }", "host.zzzzzzzzzz: unknown key"],
  ["an unknown key in a list", "proxy: { tcpListen: { port: 0 }, proxies: [ { regex: x } ] }", "proxy.proxies.0"],
  ["a duration without unit", "gcInterval: 60", "gcInterval: want a duration such as 30s"],
  ["a negative duration", "gcInterval: -1s", "gcInterval: want a duration"],
  ["a duration that is a word", "aliveTime: soon", 'aliveTime: want a duration such as 30s, 5m or 1h30m, not "soon"'],
  ["a size that is a word", "storage: { diskGCThreshold: big }", "storage.diskGCThreshold: want a size such as 100Mi"],
  ["a negative rate", "upload: { rateLimit: -1 }", "upload.rateLimit"],
  ["a fraction of a byte", "download: { totalRateLimit: 1.5 }", "download.totalRateLimit"],
  ["no connections", "download: { source: { maxConnections: 0 } }", "download.source.maxConnections"],
  ["no time for an answer", "download: { source: { idleTimeout: 500ms } }", "download.source.idleTimeout"],
  ["too many connections", "download: { source: { maxConnections: 65 } }", "download.source.maxConnections"],
  ["no pieces at once", "download: { concurrentPieceCount: 0 }", "download.concurrentPieceCount"],
  ["too many pieces at once", "download: { concurrentPieceCount: 257 }", "download.concurrentPieceCount"],
  ["a part of a piece", "download: { concurrentPieceCount: 1.5 }", "download.concurrentPieceCount"],
  ["no uploads", "upload: { concurrent: 0 }", "upload.concurrent"],
  ["more than 100 percent", "storage: { diskGCThresholdPercent: 101 }", "storage.diskGCThresholdPercent"],
  ["0 percent", "storage: { diskGCThresholdPercent: 0 }", "storage.diskGCThresholdPercent"],
  ["a port too high", "upload: { tcpListen: { port: 65536 } }", "upload.tcpListen.port: want a port number from 0 to"],
  ["a negative port", "health: { tcpListen: { port: -1 } }", "health.tcpListen.port: want a port number from 0 to"],
  ["a port that is text", 'health: { tcpListen: { port: "80" } }', "health.tcpListen.port"],
  [
    "a manager without scheme",
    "scheduler: { manager: { addr: 'manager:8080' } }",
    "scheduler.manager.addr: want an http",
  ],
  [
    "a manager of another scheme",
    "scheduler: { manager: { addr: 'ftp://m' } }",
    "scheduler.manager.addr: want an http",
  ],
  ["cluster 0", "scheduler: { manager: { seedPeer: { clusterID: 0 } } }", "scheduler.manager.seedPeer.clusterID"],
  [
    "yes for true",
    "scheduler: { disableAutoBackSource: 'yes' }",
    "scheduler.disableAutoBackSource: want true or false",
  ],
  ["a text for a list", "scheduler: { netAddrs: 'h:1' }", "scheduler.netAddrs: want a list"],
  ["a list for a section", "host: []", "host: want a section, not a list"],
  ["a text for the whole", "hello", "(top): want a section"],
  ["a host name too long", `host: { hostname: ${"h".repeat(257)} }`, "host.hostname"],
  ["what is no YAML", "host: {", "not YAML"],
  ["a rule that is no expression", "proxy: { proxies: [ { regx: '(' } ] }", "proxy.proxies.0.regx: want a regular"],
  ["a rule without one", "proxy: { proxies: [ { direct: true } ] }", "proxy.proxies.0.regx"],
  [
    "a redirect with a password",
    'proxy: { proxies: [ { regx: x, redirect: "http://u:p@h" } ] }',
    "proxy.proxies.0.redirect: want HOST",
  ],
  [
    "a redirect with a query",
    "proxy: { proxies: [ { regx: x, redirect: h?x } ] }",
    "proxy.proxies.0.redirect: want HOST",
  ],
  ["a redirect to a path", "proxy: { proxies: [ { regx: x, redirect: h/p } ] }", "proxy.proxies.0.redirect: want HOST"],
  ["a mirror of no URL", "proxy: { registryMirror: { url: docker.io } }", "proxy.registryMirror.url"],
  [
    "a registry without host",
    "proxy: { registryMirror: { registries: [ { url: 'http://h' } ] } }",
    "registries.0.host",
  ],
  [
    "a white list with a wrong port",
    "proxy: { whiteList: [ { host: h, ports: [http] } ] }",
    "proxy.whiteList.0.ports.0",
  ],
  ["TLS between hosts", "security: { tls: { enable: true } }", "security.tls.enable: not available in this version"],
  ["prefetch", "download: { prefetch: true }", "download.prefetch: not available in this version"],
];
for (const [what, text, wanted] of BAD) {
  Deno.test(`a file with ${what} is refused by its path`, () => {
    const message = refused(text);
    assert(message.includes(wanted), message);
  });
}

Deno.test("an empty proxy section turns the proxy on, with the defaults of INTERFACE section 3", () => {
  assertEquals(parseDaemonConfig("proxy: {}", "/c.yaml").proxy, {
    tcpListen: { port: 65001 },
    listenIP: "127.0.0.1",
    defaultFilter: "Expires&Signature&ns",
    defaultTag: "",
    registryMirror: {
      url: "https://index.docker.io",
      dynamic: true,
      insecure: false,
      certs: [],
      authorize: true,
      registries: [],
    },
    proxies: [{ regx: "blobs/sha256.*", useHTTPS: false, direct: false, redirect: "" }],
    whiteList: [],
    basicAuth: { username: "", password: "" },
  });
});

Deno.test("a key like no other gets no hint", () => {
  assert(!refused("host: { zzzzzzzzzz: 1 }").includes("did you mean"));
});

Deno.test("all that is wrong is said at once", () => {
  const message = refused("gcInterval: x\nupload: { concurrent: 0, prot: 1 }");
  for (const path of ["gcInterval", "upload.concurrent", "upload.prot"]) assert(message.includes(path), message);
  const later = refused("security: { tls: { enable: true } }\ndownload: { prefetch: true }");
  for (const path of ["security.tls", "download.prefetch"]) assert(later.includes(path), later);
});

Deno.test("a secret of a wrong type is not shown", () => {
  assert(!refused("scheduler: { manager: { joinToken: [s3cr3t] } }").includes("s3cr3t"));
  assert(!refused("scheduler: { manager: { joinToken: 12345678 } }").includes("12345678"));
});

Deno.test("validateDaemonConfig() holds a value to the same rules", () => {
  assertEquals(validateDaemonConfig({}, "the options"), defaultDaemonConfig());
  assertEquals(validateDaemonConfig({ upload: { rateLimit: "1Ki" } }, "the options").upload.rateLimit, 1024);
  for (const value of [null, [], "", { upload: { x: 1 } }, { proxy: { x: 1 } }]) {
    const error = assertThrows(() => validateDaemonConfig(value, "the options"), LacewingError) as LacewingError;
    assertEquals(error.code, "config_invalid");
    assert(error.message.startsWith("Cannot use the options: "), error.message);
  }
});

for (
  const [address, url] of [
    ["10.0.0.1:8002", "ws://10.0.0.1:8002/path"],
    ["host", "ws://host/path"],
    ["[::1]:80", "ws://[::1]/path"],
    ["ws://h:1", "ws://h:1/path"],
    ["wss://h:1/", "wss://h:1/path"],
    ["wss://h/own/path", "wss://h/own/path"],
  ] as const
) {
  Deno.test(`a fixed scheduler ${address} is ${url}`, () => {
    assertEquals(fixedSchedulerUrls([address], "/path"), [url]);
  });
}

for (const address of ["", "http://h:1", "h:1/path", "user@h:1", "h:99999", "[::1", "a b:1", "ws://"]) {
  Deno.test(`a fixed scheduler ${JSON.stringify(address)} is refused`, () => {
    const error = assertThrows(() => fixedSchedulerUrls(["ok:1", address], "/p"), LacewingError) as LacewingError;
    assertEquals(error.code, "config_invalid");
    assert(error.message.includes("scheduler.netAddrs") && error.message.includes(JSON.stringify(address)));
  });
}
