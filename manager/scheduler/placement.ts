/**
 * Decides which cluster a host belongs to: the one a seed peer is configured
 * for, else the first whose scopes match, else the default one. Pure.
 */
import { BlockList, isIP } from "node:net";
import type { HostFacts } from "../../peer/core/wire/scheduler.ts";
import type { ClusterPlacement } from "./schedulers.ts";

/**
 * @param ip address that the connection came from; the one that the host itself names counts too
 * @returns id of the cluster, or null when there is no cluster that takes the host
 */
export function placeHost(facts: HostFacts, ip: string, clusters: readonly ClusterPlacement[]): number | null {
  const own = facts.type === "seed" && clusters.find(({ id }) => id === facts.cluster_id);
  if (own) return own.id;
  const matching = clusters.find(({ scopes }) => matches(scopes, facts, ip));
  return (matching ?? clusters.find(({ is_default }) => is_default))?.id ?? null;
}

/** Every scope that is given must match; a cluster without scopes matches nobody. */
function matches(scopes: ClusterPlacement["scopes"], facts: HostFacts, ip: string): boolean {
  const { idc = "", location = "", cidrs = [], hostnames = [] } = scopes;
  const verdicts = [
    ...(idc === "" ? [] : [idc.split("|").includes(facts.idc)]),
    ...(location === "" ? [] : [isLocationWithin(facts.location, location)]),
    ...(cidrs.length === 0 ? [] : [cidrs.some((cidr) => isWithin(ip, cidr) || isWithin(facts.ip, cidr))]),
    ...(hostnames.length === 0 ? [] : [hostnames.some((pattern) => isNamed(facts.hostname, pattern))]),
  ];
  return verdicts.length > 0 && verdicts.every(Boolean);
}

/** Locations are paths such as `asia|cn|shanghai`; a prefix ends at an element. */
function isLocationWithin(location: string, prefix: string): boolean {
  return location === prefix || location.startsWith(prefix.endsWith("|") ? prefix : `${prefix}|`);
}

function isWithin(ip: string, cidr: string): boolean {
  const [network = "", prefix] = cidr.split("/");
  const family = isIP(network);
  const ipFamily = isIP(ip);
  const bitsMax = family === 4 ? 32 : 128;
  const bits = prefix === undefined ? bitsMax : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Infinity;
  if (family === 0 || ipFamily === 0 || bits > bitsMax) return false;
  const list = new BlockList();
  list.addSubnet(network, bits, family === 4 ? "ipv4" : "ipv6");
  return list.check(ip, ipFamily === 4 ? "ipv4" : "ipv6");
}

/** A plain name must be equal; anything else is a regular expression that is searched. */
function isNamed(hostname: string, pattern: string): boolean {
  if (hostname === pattern) return true;
  if (/^[\w.-]*$/.test(pattern)) return false;
  try {
    return new RegExp(pattern).test(hostname);
  } catch {
    return false;
  }
}
