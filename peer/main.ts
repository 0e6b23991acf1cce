/**
 * `lacewing-peer`, and what `lacewing daemon` runs: flags, configuration file,
 * log sink, the `ready` line and the signals of the daemon: SIGINT and SIGTERM
 * stop it, SIGHUP makes it read its configuration again.
 */
import { parseArgs } from "@std/cli/parse-args";
import { type DaemonConfig, defaultDaemonConfig, parseDaemonConfig } from "./config.ts";
import { nearest } from "./core/config.ts";
import { parsePprofPort, startDiagnostics } from "./core/diagnostics.ts";
import { ERRORS, LacewingError } from "./core/errors.ts";
import { createLogger, type Logger, printable } from "./core/log.ts";
import { openLogFile } from "./core/log_file.ts";
import { ensurePrivateFolder, machineFacts } from "./core/machine.ts";
import { defaultLogDir, defaultSocket, defaultWorkHome } from "./core/paths.ts";
import { parseByteSize } from "./core/units.ts";
import { VERSION } from "./core/version.ts";
import { type RunningPeer, startPeer } from "./daemon.ts";
import { configChanges, limitsOf } from "./reload.ts";

const DEFAULT_CONFIG = "/etc/lacewing/client.yaml";
/** A daemon that a client started leaves after this time without work. */
const STARTED_BY_CLIENT_ALIVE_MS = 5 * 60_000;
/** Set by the client for the daemon it starts. */
const STARTED_BY_CLIENT = "LACEWING_STARTED_BY_CLIENT";

const HELP = `Usage: lacewing-peer [flags]     (the same daemon as: lacewing daemon [flags])

Runs the daemon of this host: it downloads for its clients, and hands pieces to
the daemons of other hosts.

Flags:
      --config FILE        configuration (YAML); else $CLIENT_CONFIG, else
                           ${DEFAULT_CONFIG}
      --workhome DIR       where the daemon keeps its state and contents
      --daemon-sock PATH   Unix socket for the clients
      --logdir DIR         folder of the log files
      --console            write log records to stdout
      --verbose            log at debug level
      --limit RATE         download limit of all tasks per second, such as 50M;
                           0 (default) is none
      --jaeger URL         send traces to this OTLP/HTTP collector, such as
                           http://127.0.0.1:4318
      --service-name NAME  name in traces (default lacewing-daemon)
      --pprof-port PORT    serve profiles on this port of loopback; 0 takes a
                           free one, -1 (default) is off
  -h, --help               this help
      --version            version
`;

const STRINGS = [
  "config",
  "workhome",
  "daemon-sock",
  "logdir",
  "limit",
  "jaeger",
  "service-name",
  "pprof-port",
] as const;
const BOOLEANS = ["console", "verbose", "help", "version"] as const;

/** @returns the exit code */
export async function main(args: string[]): Promise<number> {
  try {
    return await run(args);
  } catch (error) {
    const known = error instanceof LacewingError;
    const message = known ? error.message : `internal error: ${error instanceof Error ? error.stack : error}`;
    console.error(`lacewing-peer: ${printable(message)}`);
    return known ? ERRORS[error.code].exitCode : 70;
  }
}

async function run(args: string[]): Promise<number> {
  const flags = readFlags(args);
  if (flags.help) return print(HELP);
  if (flags.version) return print(`lacewing-peer ${VERSION}\n`);
  const facts = machineFacts();
  const config = await readConfig(flags);
  const workHome = absolute(flags.workhome ?? (config.workHome === "" ? defaultWorkHome(facts) : config.workHome));
  const socket = socketPath(flags["daemon-sock"]);
  const logDir = absolute(flags.logdir ?? (config.logDir === "" ? defaultLogDir(facts, "daemon") : config.logDir));
  using file = flags.console ? null : openLogFile(`${logDir}/core.log`);
  const log = createLogger(file === null ? console.log : (line) => file.write(line), {
    level: flags.verbose ? "debug" : "info",
  });

  const startedByClient = Deno.env.get(STARTED_BY_CLIENT) === "1";
  const aliveTimeMs = config.aliveTime ?? (startedByClient ? STARTED_BY_CLIENT_ALIVE_MS : 0);
  const stopped = Promise.withResolvers<void>();
  const onSignal = () => stopped.resolve();
  for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.addSignalListener(signal, onSignal);
  try {
    await using diagnostics = await startDiagnostics({
      collector: flags.jaeger ?? null,
      serviceName: flags["service-name"] ?? "lacewing-daemon",
      pprofPort: readPprofPort(flags["pprof-port"]),
      log,
    });
    const { tracer, pprof } = diagnostics;
    const pluginDir = Deno.env.get("LACEWING_PLUGIN_DIR") || undefined;
    await using peer = await startPeer({
      ...{ config, workHome, socket, log, aliveTimeMs, tracer },
      pluginDir: pluginDir === undefined ? undefined : absolute(pluginDir),
    });
    using _reload = reloadOnHangup(peer, { config, log, read: () => readConfig(flags) });
    const addresses = { ...peer.addresses, ...(pprof === null ? {} : { pprof }) };
    console.log(`ready ${JSON.stringify(addresses)}`);
    log.info("ready", { ...addresses, version: VERSION, work_home: workHome });
    await Promise.race([stopped.promise, peer.idle]);
    log.info("stopping");
  } finally {
    for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.removeSignalListener(signal, onSignal);
  }
  return 0;
}

/** On SIGHUP the configuration is read again, and its limits hold at once; what cannot be read changes nothing. */
function reloadOnHangup(
  peer: RunningPeer,
  { config, log, read }: { config: DaemonConfig; log: Logger; read: () => Promise<DaemonConfig> },
): Disposable {
  let current = config;
  const reload = async () => {
    try {
      const next = await read();
      const { live } = configChanges(current, next);
      peer.setLimits(limitsOf(next));
      current = next;
      log.info("configuration read again", { changed: live, needs_restart: configChanges(config, next).needRestart });
    } catch (error) {
      log.error("the configuration cannot be read again; the old one holds", { error });
    }
  };
  Deno.addSignalListener("SIGHUP", reload);
  return { [Symbol.dispose]: () => Deno.removeSignalListener("SIGHUP", reload) };
}

type Flags = Partial<Record<typeof STRINGS[number], string>> & Record<typeof BOOLEANS[number], boolean>;

function readFlags(args: string[]): Flags {
  const known = [...STRINGS, ...BOOLEANS];
  const unknown = (argument: string) => {
    const name = argument.replace(/^-+/, "").split("=", 1)[0] ?? "";
    const near = argument.startsWith("-") ? nearest(name, known) : null;
    const hint = near === null ? "" : `; did you mean --${near}?`;
    throw new LacewingError(
      "usage",
      `Cannot read argument ${JSON.stringify(argument)}: the daemon has no such flag${hint}`,
    );
  };
  const flags = parseArgs(joinNumbers(args), {
    string: [...STRINGS],
    boolean: [...BOOLEANS],
    alias: { h: "help" },
    unknown,
  });
  // What follows a "--" is not given to `unknown`.
  for (const argument of flags._) unknown(String(argument));
  for (const name of STRINGS) {
    if (flags[name] === "") throw new LacewingError("usage", `Cannot read flag --${name}: it needs a value`);
  }
  return flags as unknown as Flags;
}

/** `--pprof-port -1` as `--pprof-port=-1`: `parseArgs` takes no value that begins with a dash. */
function joinNumbers(args: readonly string[]): string[] {
  return args.flatMap((arg, index) => {
    if (arg === "--pprof-port" && /^-\d/.test(args[index + 1] ?? "")) return [`${arg}=${args[index + 1]}`];
    return args[index - 1] === "--pprof-port" && /^-\d/.test(arg) ? [] : [arg];
  });
}

function readPprofPort(text = "-1"): number | null {
  try {
    return parsePprofPort(text);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new LacewingError("usage", `Cannot read flag --pprof-port: ${reason}`, { cause });
  }
}

function readLimit(text: string): number {
  try {
    return parseByteSize(text);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new LacewingError("usage", `Cannot read flag --limit: ${reason}`, { cause });
  }
}

/** The configuration, with what the flags say over it. */
async function readConfig(flags: Flags): Promise<DaemonConfig> {
  const config = await readConfigFile(flags.config);
  if (flags.limit !== undefined) config.download.totalRateLimit = readLimit(flags.limit);
  return config;
}

/** A file that was named must be there; the default one may be missing. */
async function readConfigFile(named: string | undefined): Promise<DaemonConfig> {
  const fromEnv = Deno.env.get("CLIENT_CONFIG");
  const path = named ?? (fromEnv === "" ? undefined : fromEnv);
  try {
    return parseDaemonConfig(await Deno.readTextFile(path ?? DEFAULT_CONFIG), path ?? DEFAULT_CONFIG);
  } catch (cause) {
    if (cause instanceof LacewingError) throw cause;
    if (path === undefined && cause instanceof Deno.errors.NotFound) return defaultDaemonConfig();
    const reason = cause instanceof Deno.errors.NotFound
      ? "no such file"
      : cause instanceof Error
      ? cause.message
      : String(cause);
    throw new LacewingError("config_invalid", `Cannot read configuration ${path ?? DEFAULT_CONFIG}: ${reason}`, {
      cause,
    });
  }
}

function socketPath(named: string | undefined): string {
  if (named !== undefined) return absolute(named);
  const { path, fallback } = defaultSocket(machineFacts());
  if (fallback) ensurePrivateFolder(path.slice(0, path.lastIndexOf("/")));
  return path;
}

function absolute(path: string): string {
  return path.startsWith("/") ? path : `${Deno.cwd()}/${path}`;
}

function print(text: string): number {
  Deno.stdout.writeSync(new TextEncoder().encode(text));
  return 0;
}

if (import.meta.main) Deno.exit(await main(Deno.args));
