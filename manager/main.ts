/**
 * `lacewing-manager`: flags, configuration file, log sink, the `ready` line
 * and the signals of the manager; and the commands that work on its store.
 */
import { parseArgs } from "@std/cli/parse-args";
import { nearest } from "../peer/core/config.ts";
import { ERRORS, LacewingError } from "../peer/core/errors.ts";
import { startDiagnostics } from "../peer/core/diagnostics.ts";
import { createLogger, type LogSink, printable } from "../peer/core/log.ts";
import { openLogFile } from "../peer/core/log_file.ts";
import { machineFacts } from "../peer/core/machine.ts";
import { VERSION } from "../peer/core/version.ts";
import { COMMANDS, isCommand, runCommand } from "./commands.ts";
import { loadConfig, type ManagerConfig } from "./config.ts";
import { startManager } from "./manager.ts";
import { makeWorkHome } from "./work_home.ts";

const HELP = `Usage: lacewing-manager [flags]
       lacewing-manager [flags] COMMAND

Serves the API, runs preheat jobs, and schedules the hosts of its clusters.

Commands:
  migrate              bring the database to this version
  token create --name NAME --scopes job,cluster,admin,peer [--expires 30d]
                       make a personal access token and print it
  token list           list the tokens
  token revoke ID      revoke a token

Flags:
      --config FILE        configuration (YAML); else $MANAGER_CONFIG, else
                           /etc/lacewing/manager.yaml
      --listen HOST:PORT   address of the API (default 127.0.0.1:8080)
      --workhome DIR       folder of database, tokens and logs
      --database-url URL   sqlite:///path; default: in the work home
      --role ROLES         api,scheduler,worker (all three in this version)
      --logdir DIR         folder of manager.log (default: logs/ in the work home)
      --console            write log records to stdout
      --verbose            log at debug level
      --jaeger URL         send traces to this OTLP/HTTP collector, such as
                           http://127.0.0.1:4318
      --service-name NAME  name in traces (default lacewing-manager)
  -h, --help               this help
      --version            version
`;

const STRINGS = [
  "config",
  "listen",
  "workhome",
  "database-url",
  "role",
  "logdir",
  "jaeger",
  "service-name",
  "name",
  "scopes",
  "expires",
] as const;
const BOOLEANS = ["console", "verbose", "help", "version"] as const;
const ROLES = ["api", "scheduler", "worker"];
/** Log lines kept back until the `ready` line, which comes first on stdout. */
const HELD_LINES_MAX = 1000;

type Flags = Partial<Record<typeof STRINGS[number], string>> & Record<typeof BOOLEANS[number], boolean> & {
  _: string[];
};

/** @returns the exit code */
export async function main(args: string[]): Promise<number> {
  try {
    return await run(args);
  } catch (error) {
    const known = error instanceof LacewingError;
    const message = known ? error.message : `internal error: ${error instanceof Error ? error.stack : error}`;
    console.error(`lacewing-manager: ${printable(message)}`);
    return known ? ERRORS[error.code].exitCode : 70;
  }
}

async function run(args: string[]): Promise<number> {
  const flags = readFlags(args[0] === "--" ? args.slice(1) : args);
  if (flags.help) return print(HELP);
  if (flags.version) return print(`lacewing-manager ${VERSION}\n`);
  const [command, ...rest] = flags._;
  if (command !== undefined && !isCommand(command)) {
    const near = nearest(command, COMMANDS);
    const hint = near === null ? `want one of ${COMMANDS.join(", ")}` : `did you mean ${near}?`;
    throw new LacewingError("usage", `Cannot run ${JSON.stringify(command)}: there is no such command; ${hint}`);
  }
  const config = configOf(flags);
  if (command !== undefined) return print(await runCommand(command, rest, { config, flags }));
  for (const name of ["name", "scopes", "expires"] as const) {
    if (flags[name] !== undefined) throw new LacewingError("usage", `Cannot use --${name}: it belongs to token create`);
  }
  checkRole(flags.role);
  return await serve(config, flags);
}

async function serve(config: ManagerConfig, flags: Flags): Promise<number> {
  makeWorkHome(config.workHome);
  using output = openOutput(flags, config.workHome);
  const log = createLogger(output.sink, { level: flags.verbose ? "debug" : "info" });
  const stopped = Promise.withResolvers<string>();
  const listeners = (["SIGINT", "SIGTERM"] as const).map((signal) => [signal, () => stopped.resolve(signal)] as const);
  for (const [signal, listener] of listeners) Deno.addSignalListener(signal, listener);
  try {
    const token = Deno.env.get("LACEWING_ADMIN_TOKEN");
    await using diagnostics = await startDiagnostics({
      collector: flags.jaeger ?? null,
      serviceName: flags["service-name"] ?? "lacewing-manager",
      pprofPort: null,
      log,
    });
    await using manager = await startManager(config, {
      log,
      tracer: diagnostics.tracer,
      ...(token === undefined ? {} : { adminToken: token }),
    });
    console.log(`ready ${JSON.stringify({ http: manager.http })}`);
    output.release();
    log.info("ready", { http: manager.http, version: VERSION, work_home: config.workHome });
    log.info("stopping", { signal: await stopped.promise });
  } catch (error) {
    log.error("the manager failed", { error });
    throw error;
  } finally {
    for (const [signal, listener] of listeners) Deno.removeSignalListener(signal, listener);
  }
  return 0;
}

/** The log's sink; with `--console` lines wait for `release`. */
function openOutput(flags: Flags, workHome: string): Disposable & { sink: LogSink; release: () => void } {
  if (!flags.console) {
    const file = openLogFile(`${absolute(flags.logdir ?? `${workHome}/logs`)}/manager.log`);
    return { sink: (line) => file.write(line), release: () => {}, [Symbol.dispose]: () => file[Symbol.dispose]() };
  }
  let held: string[] | null = [];
  const release = () => {
    for (const line of held ?? []) console.log(line);
    held = null;
  };
  const sink = (line: string) => {
    if (held === null) console.log(line);
    else if (held.length < HELD_LINES_MAX) held.push(line);
  };
  return { sink, release, [Symbol.dispose]: release };
}

function readFlags(args: string[]): Flags {
  const flags = parseArgs(args, {
    string: [...STRINGS, "_"],
    boolean: [...BOOLEANS],
    alias: { h: "help" },
    unknown: (argument) => {
      if (!argument.startsWith("-")) return true;
      const name = argument.replace(/^-+/, "").split("=", 1)[0] ?? "";
      const near = nearest(name, [...STRINGS, ...BOOLEANS]);
      const hint = near === null ? "; --help lists them" : `; did you mean --${near}?`;
      throw new LacewingError("usage", `Cannot read ${JSON.stringify(argument)}: there is no such flag${hint}`);
    },
  });
  for (const name of STRINGS) {
    if (flags[name] === "") throw new LacewingError("usage", `Cannot read flag --${name}: it needs a value`);
  }
  return flags as unknown as Flags;
}

function configOf(flags: Flags): ManagerConfig {
  const config = loadConfig(flags, {
    env: (name) => Deno.env.get(name) || undefined,
    readFile: readIfThere,
    writable: machineFacts().writable,
  });
  return { ...config, workHome: absolute(config.workHome) };
}

/** The roles are one process in this version; naming all three is right, fewer is not. */
function checkRole(role: string | undefined): void {
  if (role === undefined) return;
  const roles = role.split(",").map((name) => name.trim());
  const unknown = roles.find((name) => !ROLES.includes(name));
  if (unknown !== undefined) {
    throw new LacewingError("usage", `Cannot read --role: ${JSON.stringify(unknown)} is none of ${ROLES.join(", ")}`);
  }
  if (ROLES.some((name) => !roles.includes(name))) {
    throw new LacewingError(
      "config_invalid",
      `Cannot run with --role ${role}: splitting the roles is not available in this version; want ${ROLES.join(",")}`,
    );
  }
}

function readIfThere(path: string): string | null {
  try {
    return Deno.readTextFileSync(path);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return null;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new LacewingError("config_invalid", `Cannot read ${path}: ${reason}`, { cause });
  }
}

function absolute(path: string): string {
  return path.startsWith("/") ? path : `${Deno.cwd()}/${path}`;
}

function print(text: string): number {
  Deno.stdout.writeSync(new TextEncoder().encode(text));
  return 0;
}

if (import.meta.main) Deno.exit(await main(Deno.args));
