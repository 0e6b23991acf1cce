/** Runs a simulation for a test: any seed by `SEED=…`, and every failure says which one it was. */
import { assert } from "@std/assert";
import type { SimConfig } from "./config.ts";
import { type Outcome, simulate } from "./simulation.ts";

export interface Limits {
  /** Slowest host as a multiple of the fluid bound. */
  readonly stretch: number;
  readonly originCopies: number;
  /** Messages between one host and the scheduler, on average; default 500. */
  readonly messages?: number;
  /** Pieces sent in vain, as a share of those wanted; default 3%. */
  readonly waste?: number;
  /** Longest time that a host had nothing to do but wait; default 3 s. */
  readonly idleMs?: number;
}

/** Runs it and holds it to its limits; in every run all get the right pieces, and nobody is cut off. */
export function expectSwarm(config: SimConfig, limits: Limits): Outcome {
  const seed = Number(Deno.env.get("SEED") ?? config.seed);
  const outcome = simulate({ ...config, seed });
  const { messages = 500, waste = 0.03, idleMs = 3_000 } = limits;
  const checks: [string, number, number][] = [
    ["hosts without everything", outcome.incomplete, 0],
    ["hosts with a wrong piece", outcome.wrong, 0],
    ["looks that found an island", outcome.islands, 0],
    ["times the bound", outcome.stretch, limits.stretch],
    ["origin copies", outcome.originCopies, limits.originCopies],
    ["messages of a host", outcome.messages, messages],
    ["pieces in vain", outcome.waste, waste],
    ["longest idleness in ms", outcome.longestIdleMs, idleMs],
  ];
  for (const [what, is, max] of checks) {
    assert(is <= max + 1e-9, `${what}: ${is.toFixed(3)}, want at most ${max} (SEED=${seed} replays it)`);
  }
  assert(outcome.failures.length === 0, `hosts were told: ${outcome.failures.join("; ")} (SEED=${seed} replays it)`);
  return outcome;
}

/**
 * As `expectSwarm` for seeds 1 to `seeds`, and what they come to on average: one run among
 * few hosts says little, because who asks whom first may make a fifth of its time.
 */
export function expectSwarms(config: SimConfig, seeds: number, limits: Limits & { mean: Partial<Limits> }): void {
  if (Deno.env.has("SEED")) return void expectSwarm(config, limits);
  const runs = Array.from({ length: seeds }, (_, index) => expectSwarm({ ...config, seed: index + 1 }, limits));
  for (const key of ["stretch", "originCopies"] as const) {
    const mean = runs.reduce((sum, outcome) => sum + outcome[key], 0) / seeds;
    const max = limits.mean[key] ?? limits[key];
    assert(mean <= max, `${key} of ${seeds} runs on average: ${mean.toFixed(3)}, want at most ${max}`);
  }
}
