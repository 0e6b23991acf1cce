/** The command line of `deno task bench`. Pure. */
import { parseArgs } from "@std/cli/parse-args";
import { LacewingError } from "../../peer/core/errors.ts";
import { parseByteSize } from "../../peer/core/units.ts";
import type { Sections } from "./contestant.ts";
import { SCENARIOS } from "./scenarios.ts";

export const USAGE = `Usage: deno task bench [swarm|pair|transfer|client|registry|nodes|sim|scale] [flags]

  swarm       scenarios, see --scenario (the default)
  pair        one host to one host without limits (scenario i)
  transfer    ways of sending, receiving and digesting pieces in one process each, beside nginx and curl
  client      the client beside curl, wget and aria2c: whole processes from nginx on loopback
  registry    containerd from a registry, straight and through a daemon, cold and warm; an image of 385MB unless
              --size is given
  nodes       1, 2, 4 and 8 containerds behind links of 100 Mbit/s (--speed) pull one image of 40MiB (--size) at once,
              straight from the registry and through their daemons
  sim         simulated waves beside the bound, in-order picking and a tree: 16, 256 and 1000 hosts (--hosts), 256
              pieces (--pieces); 100,000 hosts and --pieces 64 take 12 minutes and 9 GB of memory
  scale       one scheduler alone: member events a second and memory of 1,000, 10,000 and 100,000 members (--members),
              and 1,000 real WebSockets (--sockets)

  --scenario a,b     which: ${SCENARIOS.map(({ id }) => id).join(" ")} h i transfer registry nodes sim scale
                     (default a,b; "all")
  --peers 16         hosts, 1 to 64
  --size 64MiB       size of the content; scenario i takes 1GiB,4GiB unless it is given,
                     client 1KiB,1MiB,1GiB, transfer 512MiB
  --speed 1          factor on the rates of all links: below 1 where the CPU is too slow for 16 hosts at 50 Mbit/s
  --warm-up 4MiB     content that all daemons exchange before anything is measured; 0 for none
  --daemon JSON      sections laid over the daemons' configuration, such as {"upload":{"concurrent":4}}
  --manager JSON     the same for the manager
  --rounds 1         times that all contestants run in turn; figures are medians
  --against LIST     bittorrent,curl (the default), or none
  --json FILE        all figures
  --svg FILE         plot of the scenarios
  --hosts 16,256     sim: hosts of each wave, 1 to 200000
  --pieces 256       sim: pieces of the content, of 256 KiB
  --members 1000     scale: members of each wave
  --sockets 1000     scale: hosts on real WebSockets
  --small            a short form for CI: under a minute
  --progress         print every host's progress as JSON
  --verbose          daemons log everything; implies --keep
  --keep             keep the folders of all processes, and say where they are
`;

export const RIVALS = ["bittorrent", "curl"] as const;
const PEERS_MAX = 64;
/** Scenarios with a bench of their own. */
const OTHERS = ["h", "i", "transfer", "registry", "nodes", "sim", "scale"];
const SMALL_SCENARIOS = ["a", ...OTHERS];
/** Scenarios that need no network, root or programs. */
export const ANYWHERE: readonly string[] = ["sim", "scale"];
const SIM_HOSTS_MAX = 200_000;
const SIM_PIECES_MAX = 4_096;
const MEMBERS_MAX = 1_000_000;
const SOCKETS_MAX = 10_000;

export interface BenchSettings {
  readonly scenarios: readonly string[];
  readonly peers: number;
  readonly size: number;
  /** Sizes of scenario i. */
  readonly pairSizes: readonly number[];
  /** Bytes that each way of the transfer bench moves. */
  readonly transferSize: number;
  /** Of the image of the registry's bench. */
  readonly imageSize: number;
  /** The same of the bench of nodes, and how many of them pull at once. */
  readonly nodesSize: number;
  readonly nodeCounts: readonly number[];
  /** Hosts of each simulated wave, and the pieces of its content. */
  readonly simHosts: readonly number[];
  readonly simPieces: number;
  /** Members of each wave through one scheduler, and real WebSockets. */
  readonly scaleMembers: readonly number[];
  readonly scaleSockets: number;
  /** Sizes of the client's bench. */
  readonly clientSizes: readonly number[];
  /** Factor on all rates. */
  readonly speed: number;
  readonly warmUpSize: number;
  /** Sections for the daemons' configuration. */
  readonly daemon: Sections;
  readonly manager: Sections;
  readonly rounds: number;
  readonly against: readonly string[];
  readonly json: string | null;
  readonly svg: string | null;
  readonly small: boolean;
  readonly progress: boolean;
  readonly verbose: boolean;
  readonly keep: boolean;
}

const TEXTS = [
  "scenario",
  "peers",
  "size",
  "rounds",
  "against",
  "json",
  "svg",
  "speed",
  "warm-up",
  "daemon",
  "manager",
  "hosts",
  "pieces",
  "members",
  "sockets",
];

/**
 * @returns null when help is asked for
 * @throws {LacewingError} `usage`
 */
export function readSettings(args: readonly string[]): BenchSettings | null {
  const flags = parseArgs([...args], {
    string: [...TEXTS],
    boolean: ["small", "progress", "verbose", "keep", "help"],
    unknown: (argument, key) => {
      if (key === undefined) return true;
      throw wrong(`Cannot read argument ${JSON.stringify(argument)}`);
    },
  });
  if (flags.help === true) return null;
  const text = (name: string, otherwise: string) => {
    const value = (flags as Record<string, unknown>)[name];
    if (value === "") throw wrong(`Cannot use --${name} without a value`);
    return typeof value === "string" ? value : otherwise;
  };
  const small = flags.small === true;
  const size = text("size", small ? "8MiB" : "64MiB");
  const pairSizes = text("size", small ? "64MiB" : "1GiB,4GiB").split(",").map(parseByteSize);
  const clientSizes = text("size", small ? "1KiB,1MiB" : "1KiB,1MiB,1GiB").split(",").map(parseByteSize);
  const [what = "swarm", ...rest] = flags._.map(String);
  if (rest.length > 0) throw wrong(`Cannot bench ${rest.join(" ")} besides ${what}`);
  return {
    scenarios: scenariosOf(what, text("scenario", small ? SMALL_SCENARIOS.join(",") : "a,b")),
    peers: whole("peers", text("peers", small ? "4" : "16"), PEERS_MAX),
    size: parseByteSize(size.split(",")[0]!),
    pairSizes,
    transferSize: parseByteSize(text("size", small ? "64MiB" : "512MiB").split(",")[0]!),
    clientSizes,
    imageSize: parseByteSize(text("size", small ? "24MiB" : "385MB").split(",")[0]!),
    nodesSize: parseByteSize(text("size", small ? "8MiB" : "40MiB").split(",")[0]!),
    nodeCounts: small ? [2] : [1, 2, 4, 8],
    simHosts: wholes("hosts", text("hosts", small ? "64" : "16,256,1000"), SIM_HOSTS_MAX),
    simPieces: whole("pieces", text("pieces", small ? "64" : "256"), SIM_PIECES_MAX),
    scaleMembers: wholes("members", text("members", small ? "1000" : "1000,10000,100000"), MEMBERS_MAX),
    scaleSockets: whole("sockets", text("sockets", small ? "50" : "1000"), SOCKETS_MAX),
    speed: factor(text("speed", "1")),
    warmUpSize: parseByteSize(text("warm-up", small ? "1MiB" : "4MiB")),
    daemon: sections("daemon", text("daemon", "{}")),
    manager: sections("manager", text("manager", "{}")),
    rounds: whole("rounds", text("rounds", "1"), 100),
    against: rivalsOf(text("against", RIVALS.join(","))),
    json: text("json", "") || null,
    svg: text("svg", "") || null,
    small,
    progress: flags.progress === true,
    verbose: flags.verbose === true,
    keep: flags.keep === true,
  };
}

function scenariosOf(what: string, list: string): string[] {
  if (what === "pair") return ["i"];
  if (what === "client" || OTHERS.includes(what)) return [what];
  if (what !== "swarm") throw wrong(`Cannot bench ${JSON.stringify(what)}`);
  const known = [...SCENARIOS.map(({ id }) => id), ...OTHERS];
  if (list === "all") return known;
  const ids = list.toLowerCase().split(",");
  const strange = ids.find((id) => !known.includes(id));
  if (strange !== undefined) {
    throw wrong(`Cannot run scenario ${JSON.stringify(strange)}: there are ${known.join(" ")}`);
  }
  return ids;
}

function rivalsOf(list: string): string[] {
  if (list === "none") return [];
  const names = list.split(",");
  const strange = names.find((name) => !(RIVALS as readonly string[]).includes(name));
  if (strange !== undefined) {
    throw wrong(`Cannot run against ${JSON.stringify(strange)}: want ${RIVALS.join(", ")} or none`);
  }
  return names;
}

function whole(name: string, text: string, max: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1 || value > max) {
    throw wrong(`Cannot use --${name} ${text}: want a whole number from 1 to ${max}`);
  }
  return value;
}

function wholes(name: string, list: string, max: number): number[] {
  return list.split(",").map((text) => whole(name, text, max));
}

function sections(name: string, text: string): Sections {
  try {
    const value: unknown = JSON.parse(text);
    const isMap = (it: unknown) => typeof it === "object" && it !== null && !Array.isArray(it);
    if (isMap(value) && Object.values(value as object).every(isMap)) {
      return value as Sections;
    }
  } catch {
    // Said below.
  }
  throw wrong(`Cannot use --${name} ${text}: want a JSON object of sections`);
}

function factor(text: string): number {
  const value = Number(text);
  if (!(value > 0 && value <= 10)) throw wrong(`Cannot use --speed ${text}: want a number above 0, at most 10`);
  return value;
}

function wrong(reason: string): LacewingError {
  return new LacewingError("usage", `${reason}\n\n${USAGE}`);
}
