/**
 * `deno task bench`: measures Lacewing against the bound, curl and BitTorrent
 * on a network of this machine's own (root on Linux). Where that cannot be it
 * says why, and ends with 0. The simulator and the scheduler alone run anywhere.
 */
import { LacewingError } from "../../peer/core/errors.ts";
import { bittorrent } from "./bittorrent.ts";
import { Calibration } from "./calibrate.ts";
import { CLIENTS, runClientBench } from "./client_bench.ts";
import type { Contestant, Workload } from "./contestant.ts";
import { curl } from "./curl.ts";
import { lacewing } from "./lacewing.ts";
import { machineFacts } from "./machine.ts";
import { removeAll } from "./network.ts";
import { nodesLines, runNodesBench } from "./nodes_bench.ts";
import { ANYWHERE, type BenchSettings, readSettings, USAGE } from "./options.ts";
import { runPair } from "./pair_bench.ts";
import { pairTable } from "./pair_report.ts";
import { installed, missing } from "./prerequisites.ts";
import { clientTable, scenarioTable, tinyTable } from "./report.ts";
import { registryBenchProblem, registryLines, runRegistryBench } from "./registry_bench.ts";
import { atSpeed, scenarioById } from "./scenarios.ts";
import { runScenario, type ScenarioResult } from "./swarm_bench.ts";
import { runScale, runSim, simLines } from "./sim_bench.ts";
import { scaleLines } from "../sim/scale_lines.ts";
import { plot } from "./svg.ts";
import { runTiny } from "./tiny_bench.ts";
import { runTransfer, transferTable } from "./transfer_bench.ts";
import { makeWorkload } from "./workload.ts";

const CONTESTANTS: readonly Contestant[] = [lacewing, bittorrent, curl];

/** Everything that a run has found; what --json holds. */
interface Findings {
  readonly machine: string;
  readonly date: string;
  readonly args: readonly string[];
  readonly calibrated: Record<string, number>;
  readonly swarm: readonly ScenarioResult[];
  readonly others: Readonly<Record<string, unknown>>;
}

class Bench {
  readonly calibration = new Calibration();
  readonly swarm: ScenarioResult[] = [];
  readonly others: Record<string, unknown> = {};
  readonly #made = new Map<string, Promise<Workload>>();
  readonly #contestants: Contestant[];
  #isWrong = false;

  constructor(
    private readonly settings: BenchSettings,
    private readonly folder: string,
    private readonly signal: AbortSignal,
  ) {
    this.#contestants = CONTESTANTS.filter(({ name }) => name === "lacewing" || settings.against.includes(name));
  }

  /** Whether any file arrived that was not right. */
  get isWrong(): boolean {
    return this.#isWrong;
  }

  async run(id: string): Promise<void> {
    this.signal.throwIfAborted();
    if (id === "h") await this.#tiny();
    else if (id === "i") await this.#pair();
    else if (id === "transfer") await this.#transfer();
    else if (id === "client") await this.#client();
    else if (id === "registry") await this.#registry();
    else if (id === "nodes") await this.#nodes();
    else if (id === "sim") await this.#sim();
    else if (id === "scale") await this.#scale();
    else await this.#scenario(id);
  }

  async #scenario(id: string): Promise<void> {
    const { peers, size, speed, rounds, keep, verbose, small } = this.settings;
    const result = await runScenario(atSpeed(scenarioById(id)!, speed), { peers, size }, {
      calibration: this.calibration,
      contestants: this.#contestants,
      rounds,
      folder: this.folder,
      keep: keep || verbose,
      verbose,
      daemon: this.settings.daemon,
      manager: this.settings.manager,
      workload: (sizes) => this.#workload(sizes),
      signal: this.signal,
    });
    this.swarm.push(result);
    this.#isWrong ||= result.trials.some(({ wrong }) => wrong.length > 0);
    say(scenarioTable(result));
    if (!small && this.settings.progress) { for (const trial of result.trials) say(JSON.stringify(trial)); }
  }

  async #tiny(): Promise<void> {
    const { peers, small } = this.settings;
    const results = await runTiny({
      daemon: this.settings.daemon,
      manager: this.settings.manager,
      peers,
      count: small ? 5 : 20,
      folder: `${this.folder}/tiny`,
      workload: (sizes) => this.#workload(sizes),
    });
    this.others.h = results;
    say(tinyTable(results, peers));
  }

  async #pair(): Promise<void> {
    const { pairSizes, rounds, against } = this.settings;
    const results = await runPair({
      daemon: this.settings.daemon,
      manager: this.settings.manager,
      sizes: pairSizes,
      rounds,
      against,
      folder: `${this.folder}/pair`,
      workload: (sizes) => this.#workload(sizes),
    });
    this.others.i = results;
    this.#isWrong ||= results.some(({ wrong }) => wrong.length > 0);
    say(pairTable(results));
  }

  async #transfer(): Promise<void> {
    const { transferSize: size, rounds, small } = this.settings;
    const results = await runTransfer({ size, rounds, small, folder: `${this.folder}/transfer` });
    this.others.transfer = results;
    this.#isWrong ||= results.some(({ isRight }) => !isRight);
    say(transferTable(results));
  }

  async #client(): Promise<void> {
    const { clientSizes, rounds, small } = this.settings;
    const results = await runClientBench({
      sizes: clientSizes,
      count: (size) => small ? 2 : size > 64 * 1024 * 1024 ? rounds : 5 * rounds,
      folder: `${this.folder}/client`,
      clients: await installed(CLIENTS),
      workload: (sizes) => this.#workload(sizes),
    });
    this.others.client = results;
    say(clientTable(results));
  }

  async #registry(): Promise<void> {
    const problem = registryBenchProblem();
    if (problem !== null) return say(`Registry: skipped, ${problem}\n`);
    const { imageSize, rounds, daemon } = this.settings;
    const result = await runRegistryBench({ size: imageSize, rounds, folder: this.folder, daemon });
    this.others.registry = result;
    say(registryLines(result));
  }

  async #nodes(): Promise<void> {
    const problem = registryBenchProblem();
    if (problem !== null) return say(`Nodes: skipped, ${problem}\n`);
    const { nodesSize: size, nodeCounts: counts, rounds, speed, daemon, manager } = this.settings;
    const result = await runNodesBench({ size, counts, rounds, speed, daemon, manager });
    this.others.nodes = result;
    say(nodesLines(result));
  }

  async #sim(): Promise<void> {
    const { simHosts: hosts, simPieces: pieces } = this.settings;
    const runs = await runSim({ hosts, pieces, signal: this.signal });
    this.others.sim = runs;
    this.#isWrong ||= runs.some(({ incomplete, wrong }) => incomplete + wrong > 0);
    say(simLines(runs));
  }

  async #scale(): Promise<void> {
    const { scaleMembers: members, scaleSockets: sockets } = this.settings;
    const result = await runScale({ members, sockets, signal: this.signal });
    this.others.scale = result;
    say(`Scheduler: one process alone\n${scaleLines(result)}\n`);
  }

  #workload(sizes: readonly number[]): Promise<Workload> {
    const key = sizes.join(",");
    let made = this.#made.get(key);
    if (made === undefined) {
      made = makeWorkload(`${this.folder}/origin-${this.#made.size}`, {
        sizes,
        warmUpSize: this.settings.warmUpSize,
      });
      this.#made.set(key, made);
    }
    return made;
  }
}

async function main(args: string[]): Promise<number> {
  const settings = readSettings(args);
  if (settings === null) {
    console.log(USAGE);
    return 0;
  }
  const isAnywhere = (id: string) => ANYWHERE.includes(id);
  const { reasons, rivals } = settings.scenarios.every(isAnywhere) ? { reasons: [], rivals: [] } : await missing();
  if (reasons.length > 0) say(`bench skipped: ${reasons.join("; ")}`);
  const scenarios = reasons.length > 0 ? settings.scenarios.filter(isAnywhere) : settings.scenarios;
  if (scenarios.length === 0) return 0;
  if (rivals.length > 0) say(`not installed, so left out: ${rivals.join(", ")}`);
  const against = rivals.length > 0 ? settings.against.filter((name) => name !== "bittorrent") : settings.against;
  const folder = await Deno.makeTempDir({ prefix: "lacewing-bench-" });
  const stop = new AbortController();
  const onSignal = () => stop.abort(new DOMException("The bench was stopped", "AbortError"));
  for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.addSignalListener(signal, onSignal);
  const bench = new Bench({ ...settings, against }, folder, stop.signal);
  const machine = machineFacts();
  say(`${machine}\n`);
  try {
    // What runs stops by losing its network; the folder goes last.
    for (const id of scenarios) await Promise.race([bench.run(id), aborted(stop.signal)]);
    const { swarm, others, calibration: { figures } } = bench;
    const findings: Findings = {
      machine,
      date: new Date().toISOString(),
      args,
      calibrated: figures,
      swarm,
      others,
    };
    if (settings.json !== null) await Deno.writeTextFile(settings.json, JSON.stringify(findings, null, 1) + "\n");
    if (settings.svg !== null) await Deno.writeTextFile(settings.svg, plot(swarm));
    return bench.isWrong ? 1 : 0;
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    return 130;
  } finally {
    if (!scenarios.every(isAnywhere)) await removeAll();
    if (settings.keep || settings.verbose) say(`kept: ${folder}`);
    else await Deno.remove(folder, { recursive: true }).catch(() => {});
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
}

function say(text: string): void {
  console.log(text);
}

if (import.meta.main) {
  try {
    Deno.exit(await main(Deno.args));
  } catch (error) {
    if (!(error instanceof LacewingError)) throw error;
    console.error(error.message);
    Deno.exit(error.code === "usage" ? 2 : 1);
  }
}
