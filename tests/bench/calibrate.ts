/**
 * What a limited link really carries: the goodput of one raw TCP stream. About
 * 4% below the limit, which counts headers. A bound that took the limit itself would be
 * out of reach for anybody.
 */
import type { Rates } from "./bound.ts";
import type { BenchNetwork, HostLink } from "./network.ts";
import { BenchProcess } from "./processes.ts";

const PORT = 5999;
const MEASURE_MS = 1500;

export class Calibration {
  /** `up 50000000` → bytes per second. */
  readonly #known = new Map<string, number>();

  /** Goodput of a host's link; measured once for each limit and direction, against `unlimited`. */
  async rates(network: BenchNetwork, host: HostLink, unlimited: string): Promise<Rates> {
    return {
      up: await this.#rate(network, { kind: "up", limit: host.up, from: host.name, to: unlimited }),
      down: await this.#rate(network, { kind: "down", limit: host.down, from: unlimited, to: host.name }),
    };
  }

  /** What was measured so far, by direction and limit. */
  get figures(): Record<string, number> {
    return Object.fromEntries(this.#known);
  }

  async #rate(
    network: BenchNetwork,
    { kind, limit, from, to }: { kind: "up" | "down"; limit: number; from: string; to: string },
  ): Promise<number> {
    if (limit === 0) return Infinity;
    const key = `${kind} ${limit}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const measured = await streamRate(network, from, to);
    this.#known.set(key, measured);
    return measured;
  }
}

/** Bytes per second of one TCP stream between two hosts. */
export async function streamRate(network: BenchNetwork, from: string, to: string): Promise<number> {
  const script = decodeURIComponent(new URL("raw_stream.ts", import.meta.url).pathname);
  const deno = [Deno.execPath(), "run", "--no-config", "--no-lock", "--allow-net", script];
  const target = [network.address(to), String(PORT)];
  await using receiver = new BenchProcess(
    `raw stream to ${to}`,
    network.on(to, [...deno, "receive", ...target, String(MEASURE_MS)]),
  );
  await receiver.line((line) => line === "listening");
  await using _sender = new BenchProcess(`raw stream from ${from}`, network.on(from, [...deno, "send", ...target]));
  const line = await receiver.line((text) => text.startsWith("rate "));
  return Number(line.slice("rate ".length));
}
