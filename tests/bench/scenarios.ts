/**
 * The scenarios of `deno task bench swarm`, as tables. Pure. Rates are limits
 * of links in bits per second; N·rate stays below what two cores can move.
 */
import type { HostLink } from "./network.ts";

const MBIT = 1_000_000;
const MIB = 1024 * 1024;

/** What the command line may change. */
export interface ScenarioSettings {
  readonly peers: number;
  /** Size of the one content, in scenarios that have one. */
  readonly size: number;
}

export interface Scenario {
  readonly id: string;
  readonly title: string;
  /** Bits per second that the origin can send. */
  readonly originUp: number;
  /** Hosts that want the workload. */
  readonly hosts: (settings: ScenarioSettings) => HostLink[];
  /** Sizes of the workload's files. */
  readonly sizes: (settings: ScenarioSettings) => number[];
  /** Groups of hosts that begin one after the other, each when the one before has finished. */
  readonly waves?: number;
  /** A host beside them that holds everything at the beginning, and is the source. */
  readonly seed?: HostLink;
  /** Shares of the hosts that are killed at half the way, and that come back. */
  readonly churn?: { readonly killed: number; readonly back: number };
  /** Bits per second between two racks; the origin stands in the first. */
  readonly trunk?: number;
}

function equalHosts(mbit: number): Scenario["hosts"] {
  return ({ peers }) => Array.from({ length: peers }, (_, index) => link(index, mbit));
}

function link(index: number, mbit: number): HostLink {
  return { name: `p${index + 1}`, up: mbit * MBIT, down: mbit * MBIT };
}

const oneFile: Scenario["sizes"] = ({ size }) => [size];

export const SCENARIOS: readonly Scenario[] = [
  {
    id: "a",
    title: "cold wave: everybody in the same instant",
    originUp: 50 * MBIT,
    hosts: equalHosts(50),
    sizes: oneFile,
  },
  { id: "b", title: "scarce origin", originUp: 20 * MBIT, hosts: equalHosts(100), sizes: oneFile },
  {
    id: "d",
    title: "rolling waves: four, one after the other",
    originUp: 50 * MBIT,
    hosts: equalHosts(50),
    sizes: oneFile,
    waves: 4,
  },
  {
    id: "e",
    title: "different hosts: a quarter fast, a quarter slow",
    originUp: 50 * MBIT,
    hosts: ({ peers }) =>
      Array.from({ length: peers }, (_, index) => {
        const quarter = Math.floor(index * 4 / peers);
        return link(index, quarter === 0 ? 100 : quarter === 3 ? 12.5 : 50);
      }),
    sizes: oneFile,
  },
  {
    id: "f",
    title: "churn: a quarter killed half-way, half of these back",
    originUp: 50 * MBIT,
    hosts: equalHosts(50),
    sizes: oneFile,
    churn: { killed: 1 / 4, back: 1 / 8 },
  },
  {
    id: "g",
    title: "two racks with a thin link between them",
    originUp: 50 * MBIT,
    hosts: ({ peers }) =>
      Array.from({ length: peers }, (_, index) => ({ ...link(index, 50), rack: index < peers / 2 ? 0 : 1 })),
    sizes: oneFile,
    trunk: 50 * MBIT,
  },
  {
    id: "j",
    title: "image-shaped: many small contents and a few bigger ones",
    originUp: 50 * MBIT,
    hosts: equalHosts(50),
    // 200 of 1 MiB and 4 of 16 MiB at 64 MiB of --size, in this proportion else.
    sizes: ({ size }) => {
      const share = size / (64 * MIB);
      return [
        ...new Array<number>(Math.max(1, Math.round(200 * share))).fill(MIB),
        ...new Array<number>(Math.max(1, Math.round(4 * share))).fill(16 * MIB),
      ];
    },
  },
  {
    id: "k",
    title: "a seed peer that has it all",
    originUp: 50 * MBIT,
    hosts: equalHosts(50),
    sizes: oneFile,
    seed: { name: "seed", up: 50 * MBIT, down: 50 * MBIT },
  },
  {
    id: "alone",
    title: "one host without neighbours",
    originUp: 50 * MBIT,
    hosts: () => [link(0, 50)],
    sizes: oneFile,
  },
];

/** Scenarios of a list such as `a,b`; those with benches of their own are not among them. */
export function scenarioById(id: string): Scenario | undefined {
  return SCENARIOS.find((scenario) => scenario.id === id);
}

/** The same scenario with all links slower or faster. */
export function atSpeed(scenario: Scenario, speed: number): Scenario {
  const scaled = (link: HostLink): HostLink => ({ ...link, up: link.up * speed, down: link.down * speed });
  const { seed, trunk } = scenario;
  return {
    ...scenario,
    originUp: scenario.originUp * speed,
    hosts: (settings) => scenario.hosts(settings).map(scaled),
    ...(seed === undefined ? {} : { seed: scaled(seed) }),
    ...(trunk === undefined ? {} : { trunk: trunk * speed }),
  };
}
