/**
 * The manager's configuration: one schema that is type, default, bound and
 * help text, and how flag, environment, file and default come together, in
 * this order. Decides only; the file is read by a function that is handed in.
 */
import { z } from "zod";
import { duration, parseConfig, section, validateConfig } from "../peer/core/config.ts";
import { LacewingError } from "../peer/core/errors.ts";
import { databasePath } from "./store/store.ts";

const DEFAULT_FILE = "/etc/lacewing/manager.yaml";
const SYSTEM_WORK_HOME = "/var/lib/lacewing-manager";
const DAY_MS = 86_400_000;

/** `HOST:PORT`, `[V6]:PORT` or `:PORT` (every address). */
function listenAddress() {
  return z.string().refine(
    (text) => parseListen(text) !== null,
    "want HOST:PORT with an IP address or localhost, such as 127.0.0.1:8080",
  );
}

/** A duration that must not be shorter than what it is measured with. */
function atLeastASecond() {
  return duration().refine((ms) => ms >= 1000, "want at least 1s");
}

export const managerConfig = z.strictObject({
  server: section({
    listen: listenAddress().default("127.0.0.1:8080").describe(
      "Address of the API; another one than loopback needs auth",
    ),
    advertiseAddr: z.string().refine(isAdvertisable, "want HOST:PORT, or a URL such as https://manager.example.com")
      .or(z.literal("")).default("").describe("Where hosts reach this manager; empty: where they asked"),
    tls: section({
      cert: z.string().default("").describe("PEM file; with key it makes the API https"),
      key: z.string().default(""),
    }),
  }),
  workHome: z.string().default("").describe(
    `Folder of database, tokens and logs; empty: ${SYSTEM_WORK_HOME}, else one of the user`,
  ),
  database: section({
    url: z.string().default("").describe("Empty: SQLite in the work home; else sqlite:///path"),
  }),
  auth: section({
    disabled: z.boolean().default(false).describe("Lets anyone in on any address; logged at every start"),
    joinToken: z.string().max(4096).default("").describe("What hosts show to join; needed on any address but loopback"),
  }),
  job: section({
    timeout: atLeastASecond().default(3_600_000).describe("For jobs that name none"),
    concurrentTasks: z.number().int().min(1).max(1000).default(50).describe("Tasks of one job that run at once"),
    retries: z.number().int().min(0).max(100).default(3).describe("Further tries of what may pass"),
    keep: duration().default(7 * DAY_MS).describe("How long the records of ended jobs are kept"),
    allowPrivateNetworks: z.boolean().nullable().default(null)
      .describe("Whether registries may have loopback or private addresses; null: only while listening on loopback"),
    caCerts: z.array(z.string()).default([]).describe("PEM files of further certificate authorities of registries"),
  }),
  scheduler: section({
    neighbours: z.number().int().min(1).max(31).default(12).describe("Neighbours of each host in a large swarm"),
    sourceConnectionsPerTask: z.number().int().min(1).max(64).default(4).describe(
      "Hosts that read one content's origin at once",
    ),
    hostTimeout: atLeastASecond().default(10_000).describe("Silence after which a host counts as gone"),
  }),
});

export type ManagerConfig = z.output<typeof managerConfig>;

/** What flags may set. */
export interface ConfigFlags {
  readonly config?: string;
  readonly listen?: string;
  readonly workhome?: string;
  readonly "database-url"?: string;
}

/** What loading needs of the machine. */
export interface ConfigSources {
  readonly env: (name: string) => string | undefined;
  /** The file's text, or null when it is not there. */
  readonly readFile: (path: string) => string | null;
  /** Whether files can be made in the folder. */
  readonly writable: (folder: string) => boolean;
}

/** @throws {LacewingError} `config_invalid` naming file, path and what is allowed. */
export function loadConfig(flags: ConfigFlags, sources: ConfigSources): ManagerConfig {
  const named = flags.config ?? sources.env("MANAGER_CONFIG");
  const origin = named ?? DEFAULT_FILE;
  const text = sources.readFile(origin);
  if (text === null && named !== undefined) {
    throw new LacewingError("config_invalid", `Cannot read ${named}: there is no such file`);
  }
  const config = parseConfig(text ?? "", { schema: managerConfig, origin });
  const workHome = flags.workhome ?? (config.workHome === "" ? defaultWorkHome(sources) : config.workHome);
  const merged = {
    ...config,
    server: { ...config.server, listen: flags.listen ?? config.server.listen },
    workHome: workHome.replace(/(?<=.)\/+$/, ""),
    database: { url: flags["database-url"] ?? config.database.url },
  };
  return checkConfig(validateListen(merged));
}

/** Rules that hold between keys. @throws {LacewingError} `config_invalid` */
export function checkConfig(config: ManagerConfig): ManagerConfig {
  const { server, auth } = config;
  if (!isLoopback(server.listen) && !auth.disabled && auth.joinToken === "") {
    throw new LacewingError(
      "config_invalid",
      `Cannot listen on ${server.listen} without authentication: set auth.joinToken (or auth.disabled: true to let anyone in)`,
    );
  }
  if ((server.tls.cert === "") !== (server.tls.key === "")) {
    throw new LacewingError("config_invalid", "Cannot use server.tls: want both cert and key, or neither");
  }
  databasePath(config.database.url, config.workHome);
  return config;
}

/** Host and port of `HOST:PORT`, or null when it is not one. */
export function parseListen(text: string): { hostname: string; port: number } | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|(localhost|[0-9]{1,3}(?:\.[0-9]{1,3}){3}|))?:(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65535) return null;
  const hostname = match[1] ?? (match[2] === undefined || match[2] === "" ? "0.0.0.0" : match[2]);
  if (/^[\d.]+$/.test(hostname) && hostname.split(".").some((part) => Number(part) > 255)) return null;
  if (match[1] !== undefined && URL.parse(`http://[${match[1]}]/`) === null) return null;
  return { hostname, port };
}

/** Whether an address can be reached from this machine only. */
export function isLoopback(listen: string): boolean {
  const hostname = parseListen(listen)?.hostname ?? "";
  return hostname === "localhost" || hostname === "::1" || /^127\./.test(hostname);
}

function validateListen(config: ManagerConfig): ManagerConfig {
  validateConfig({ listen: config.server.listen }, {
    schema: z.object({ listen: listenAddress() }),
    origin: "--listen",
  });
  return config;
}

function isAdvertisable(text: string): boolean {
  const url = URL.parse(text.includes("://") ? text : `http://${text}`);
  return url !== null && /^(http|https|ws|wss):$/.test(url.protocol) && url.username === "" && url.hostname !== "" &&
    url.pathname === "/" && url.search === "" && url.hash === "";
}

function defaultWorkHome({ env, writable }: ConfigSources): string {
  if (writable(SYSTEM_WORK_HOME)) return SYSTEM_WORK_HOME;
  const state = env("XDG_STATE_HOME");
  if (state !== undefined && state.startsWith("/")) return `${state}/lacewing-manager`;
  const home = env("HOME");
  if (home !== undefined && home.startsWith("/")) return `${home}/.local/state/lacewing-manager`;
  throw new LacewingError(
    "config_invalid",
    `Cannot use ${SYSTEM_WORK_HOME}: this user may not write it; name another folder with --workhome`,
  );
}
