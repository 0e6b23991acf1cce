/**
 * What a swarm could reach at best, and how far from it a measured run is.
 * Pure. The fluid bound is Kumar and Ross (2006): no schedule whatever moves
 * F bytes from one source to N hosts in less time.
 *
 * Sizes are bytes, rates bytes per second (Infinity: no limit), times seconds.
 */

/** What one host can send and receive. */
export interface Rates {
  readonly up: number;
  readonly down: number;
}

export interface Demand {
  readonly size: number;
  /** What the source can send. */
  readonly sourceUp: number;
  /** Hosts that want the content. */
  readonly hosts: readonly Rates[];
  /** What hosts can send that have it already and want nothing. */
  readonly holdersUp?: number;
}

/** max{ F/u_s, F/d_min, N·F/(u_s+U) }; without the first where holders have it too. */
export function fluidBound({ size, sourceUp, hosts, holdersUp = 0 }: Demand): number {
  if (hosts.length === 0) throw new RangeError("Cannot bound a swarm without hosts");
  const downMin = Math.min(...hosts.map(({ down }) => down));
  const up = sum(hosts.map((host) => host.up)) + holdersUp;
  return Math.max(size / (sourceUp + holdersUp), size / downMin, hosts.length * size / (sourceUp + up));
}

/** As `fluidBound`, when the source may send each byte only once. */
export function oneCopyBound({ size, sourceUp, hosts }: Demand): number {
  if (hosts.length === 0) throw new RangeError("Cannot bound a swarm without hosts");
  const downMin = Math.min(...hosts.map(({ down }) => down));
  const up = sum(hosts.map((host) => host.up));
  const others = hosts.length === 1 ? 0 : (hosts.length - 1) * size / up;
  return Math.max(size / sourceUp, size / downMin, others);
}

/** When the k-th host (from 1, in order of finishing) can be done at the earliest. */
export function finisherBound(k: number, { size, sourceUp, hosts }: Demand): number {
  if (!Number.isInteger(k) || k < 1 || k > hosts.length) {
    throw new RangeError(`Cannot bound finisher ${k} of ${hosts.length}`);
  }
  const downs = hosts.map(({ down }) => down).sort((a, b) => b - a);
  const up = sum(hosts.map((host) => host.up));
  return Math.max(size / sourceUp, size / downs[k - 1]!, k * size / (sourceUp + up));
}

/** What hosts behind one link of limited rate need at least, when the content comes from beyond it. */
export function cutBound(size: number, linkRate: number, hosts: readonly Rates[]): number {
  return Math.max(size / linkRate, hosts.length * size / (linkRate + sum(hosts.map(({ up }) => up))));
}

/** Client and server alone: max{ N·F/u_s, F/d_min }. */
export function starTime({ size, sourceUp, hosts }: Demand): number {
  return Math.max(hosts.length * size / sourceUp, size / Math.min(...hosts.map(({ down }) => down)));
}

export function stretch(measured: number, bound: number): number {
  return bound === 0 ? Infinity : measured / bound;
}

export function efficiency(measured: number, bound: number): number {
  return measured === 0 ? 0 : bound / measured;
}

export function median(values: readonly number[]): number {
  if (values.length === 0) return NaN;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
