/**
 * The daemon's configuration (INTERFACE section 3): one schema that gives
 * type, default, bound and help text. Keys of what is not built yet are known,
 * and refused when they ask for it: nothing is read and then ignored.
 */
import { z } from "zod";
import { byteSize, duration, httpUrl, parseConfig, port, section, validateConfig } from "./core/config.ts";
import { LacewingError } from "./core/errors.ts";

const regularExpression = () =>
  z.string().max(1024).refine((text) => {
    try {
      new RegExp(text);
      return true;
    } catch {
      return false;
    }
  }, "want a regular expression");

const isHostOrUrl = (text: string) => {
  const url = URL.parse(/^https?:\/\//.test(text) ? text : `http://${text}`);
  // What stands beside the host would be left out without a word.
  return text === "" || (url !== null && url.href === `${url.origin}/` && !/[?#]/.test(text));
};

const rate = () => z.union([z.literal(0), byteSize()]).describe("Bytes per second; 0 is no limit");

const proxySection = z.strictObject({
  tcpListen: section({ port: port().default(65001).describe("0 is any free one") }),
  listenIP: z.string().default("127.0.0.1"),
  defaultFilter: z.string().max(1024).default("Expires&Signature&ns").describe(
    "Query parameters that do not tell contents apart",
  ),
  defaultTag: z.string().max(256).default(""),
  registryMirror: section({
    url: httpUrl().default("https://index.docker.io").describe("The registry of requests that name none"),
    dynamic: z.boolean().default(true).describe("Whether a request may name another registry: header, ns, path"),
    insecure: z.boolean().default(false).describe("Do not verify the certificates of url and registries"),
    certs: z.array(z.string()).default([]).describe("Files with extra CA certificates (PEM)"),
    authorize: z.boolean().default(true).describe(
      "Serve from cache and peers only what the origin lets this client have",
    ),
    registries: z.array(z.strictObject({ host: z.string().min(1).max(256), url: httpUrl() })).default([]).describe(
      "Registries that are reached at another URL than https://HOST",
    ),
  }),
  proxies: z.array(section({
    regx: regularExpression(),
    useHTTPS: z.boolean().default(false),
    direct: z.boolean().default(false).describe("Not through the swarm"),
    redirect: z.string().refine(isHostOrUrl, "want HOST, HOST:PORT or an http or https URL").default(""),
  })).default([{ regx: "blobs/sha256.*", useHTTPS: false, direct: false, redirect: "" }]).describe(
    "The first rule that matches the URL decides",
  ),
  whiteList: z.array(section({
    host: z.string().max(256).default(""),
    regx: regularExpression().default(""),
    ports: z.array(z.union([port(), z.string().regex(/^\d{1,5}$/, "want a port number").transform(Number)])).default(
      [],
    ),
  })).default([]).describe("Hosts that requests may name; empty: all"),
  basicAuth: section({ username: z.string().default(""), password: z.string().default("") }),
}).describe("Without this section there is no proxy");

export const daemonConfig = z.strictObject({
  aliveTime: duration().optional().describe(
    "A daemon without work leaves after this time; 0 stays. Default 0s, 5m when started by the client",
  ),
  gcInterval: duration().default(60_000).describe("How often old contents are looked for"),
  workHome: z.string().default("").describe("Where the daemon keeps its state; empty: the default folder"),
  dataDir: z.string().default("").describe("Where contents are kept; empty: data in the work home"),
  logDir: z.string().default("").describe("Folder of the log files; empty: the default folder"),
  host: section({
    hostname: z.string().max(256).default("").describe("Name shown to others; empty: the machine's"),
    advertiseIP: z.string().max(64).default("").describe(
      "Address that neighbours use; empty: the one towards the manager",
    ),
    listenIP: z.string().default("0.0.0.0").describe("Address that the upload server listens on"),
    idc: z.string().max(128).default(""),
    location: z.string().max(256).default(""),
  }),
  scheduler: section({
    manager: section({
      enable: z.boolean().default(true),
      addr: httpUrl().optional().describe("Base URL of the manager"),
      joinToken: z.string().default(""),
      refreshInterval: duration().default(60_000),
      seedPeer: section({ enable: z.boolean().default(false), clusterID: z.number().int().positive().default(1) }),
    }),
    netAddrs: z.array(z.string()).default([]).describe(
      "HOST:PORT or ws:// URLs of fixed schedulers, instead of a manager",
    ),
    disableAutoBackSource: z.boolean().default(false).describe("Never read the origin without a scheduler's leave"),
  }),
  download: section({
    totalRateLimit: rate().default(0),
    perPeerRateLimit: rate().default(0).describe("Limit of one task"),
    concurrentPieceCount: z.number().int().min(1).max(256).default(8).describe(
      "Pieces asked of neighbours at once by all tasks together, at most; each task may ask for one",
    ),
    prefetch: z.boolean().default(false),
    source: section({
      caCerts: z.array(z.string()).default([]).describe("Files with extra CA certificates (PEM)"),
      insecure: z.boolean().default(false).describe("Do not verify the origins' certificates"),
      maxConnections: z.number().int().min(1).max(64).default(4).describe("Connections to one origin at once"),
      allowPrivateNetworks: z.boolean().default(true),
      idleTimeout: duration().refine((ms) => ms >= 1000, "want at least 1s").default(30_000).describe(
        "Longest wait for an origin's answer, and for each next byte of it; what passes through the proxy waits twice as long",
      ),
    }),
  }),
  upload: section({
    rateLimit: rate().default(0),
    tcpListen: section({ port: port().default(65002) }),
    concurrent: z.number().int().min(1).max(1024).default(16).describe(
      "Pieces served at once, at most: four, and more where that sends more",
    ),
  }),
  storage: section({
    taskExpireTime: duration().default(6 * 3_600_000).describe("Idle time after which a content may be evicted"),
    diskGCThreshold: byteSize().default(50 * 2 ** 30).describe("Least recently used contents are evicted above this"),
    diskGCThresholdPercent: z.number().min(1).max(100).default(90).describe(
      "The same, in percent of the file system in use",
    ),
    keepStorage: z.boolean().default(true).describe("Keep contents when the daemon stops"),
  }),
  proxy: proxySection.optional(),
  health: section({ tcpListen: section({ port: port().default(40901) }) }).describe(
    "/healthz and /metrics; port 0 is any free one",
  ),
  security: section({
    tls: section({
      enable: z.boolean().default(false),
      caCert: z.string().default(""),
      cert: z.string().default(""),
      key: z.string().default(""),
    }),
  }),
});

export type DaemonConfig = z.output<typeof daemonConfig>;

/**
 * Reads the daemon's YAML.
 *
 * @param origin the file's name for messages
 * @throws {LacewingError} `config_invalid` naming every path that is wrong.
 */
export function parseDaemonConfig(text: string, origin: string): DaemonConfig {
  return refuseNotBuilt(parseConfig(text, { schema: daemonConfig, origin }), origin);
}

/** As `parseDaemonConfig`, from a value. */
export function validateDaemonConfig(value: unknown, origin: string): DaemonConfig {
  return refuseNotBuilt(validateConfig(value, { schema: daemonConfig, origin }), origin);
}

/** The configuration of a daemon without a file: alone, every default. */
export function defaultDaemonConfig(): DaemonConfig {
  return daemonConfig.parse({});
}

/** The schedulers' WebSocket URLs of `netAddrs`. */
export function fixedSchedulerUrls(netAddrs: readonly string[], path: string): string[] {
  return netAddrs.map((address) => {
    const isUrl = /^wss?:\/\//.test(address);
    const url = URL.parse(isUrl ? address : `ws://${address}`);
    // Without this, "http://h:1" would be the host "http".
    if (url === null || (!isUrl && /[/?#@]/.test(address))) {
      throw new LacewingError(
        "config_invalid",
        `Cannot use scheduler.netAddrs: ${JSON.stringify(address)} is neither HOST:PORT nor a ws:// URL`,
      );
    }
    if (url.pathname === "/") url.pathname = path;
    return url.href;
  });
}

function refuseNotBuilt(config: DaemonConfig, origin: string): DaemonConfig {
  const paths: string[] = [];
  if (config.security.tls.enable) paths.push("security.tls.enable");
  if (config.download.prefetch) paths.push("download.prefetch");
  if (paths.length === 0) return config;
  const reasons = paths.map((path) => `${path}: not available in this version`).join("; ");
  throw new LacewingError("config_invalid", `Cannot use ${origin}: ${reasons}`);
}
