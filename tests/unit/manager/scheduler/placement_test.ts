import { assertEquals } from "@std/assert";
import { placeHost } from "../../../../manager/scheduler/placement.ts";
import type { ClusterPlacement } from "../../../../manager/scheduler/schedulers.ts";
import { factsOf } from "./world.ts";

const DEFAULT: ClusterPlacement = { id: 1, is_default: true, scopes: {} };
const cluster = (scopes: ClusterPlacement["scopes"], id = 2): ClusterPlacement => ({ id, is_default: false, scopes });

const rows: [
  name: string,
  scopes: ClusterPlacement["scopes"],
  facts: Parameters<typeof factsOf>[1],
  ip: string,
  matches: boolean,
][] = [
  ["the same idc", { idc: "a" }, { idc: "a" }, "", true],
  ["one of several idcs", { idc: "a|b" }, { idc: "b" }, "", true],
  ["another idc", { idc: "a" }, { idc: "ab" }, "", false],
  ["no idc", { idc: "a" }, {}, "", false],
  ["the same location", { location: "asia|cn" }, { location: "asia|cn" }, "", true],
  ["a place within the location", { location: "asia|cn" }, { location: "asia|cn|x" }, "", true],
  ["a location that only begins alike", { location: "asia|cn" }, { location: "asia|cna" }, "", false],
  ["a wider location", { location: "asia|cn" }, { location: "asia" }, "", false],
  ["an address of the connection", { cidrs: ["10.1.0.0/16"] }, { ip: "1.1.1.1" }, "10.1.2.3", true],
  ["an address that the host names", { cidrs: ["10.1.0.0/16"] }, { ip: "10.1.2.3" }, "1.1.1.1", true],
  ["an address outside", { cidrs: ["10.1.0.0/16"] }, { ip: "10.2.0.1" }, "10.2.0.1", false],
  ["an IPv6 network", { cidrs: ["fd00::/8"] }, { ip: "fd12::1" }, "", true],
  ["a single address", { cidrs: ["10.2.0.1"] }, { ip: "10.2.0.1" }, "", true],
  ["the neighbour of a single address", { cidrs: ["10.2.0.1"] }, { ip: "10.2.0.2" }, "", false],
  ["a network without a length", { cidrs: ["10.0.0.0/"] }, { ip: "1.2.3.4" }, "", false],
  ["a length beyond 32", { cidrs: ["10.0.0.0/33"] }, { ip: "10.0.0.1" }, "", false],
  ["no network at all", { cidrs: ["rubbish"] }, { ip: "10.0.0.1" }, "", false],
  ["everything", { cidrs: ["0.0.0.0/0"] }, { ip: "10.0.0.1" }, "", true],
  ["the exact name", { hostnames: ["web-1"] }, { hostname: "web-1" }, "", true],
  ["a longer name", { hostnames: ["web-1"] }, { hostname: "web-10" }, "", false],
  ["a plain name with dots", { hostnames: ["a.b"] }, { hostname: "axb" }, "", false],
  ["a pattern", { hostnames: ["^web-\\d+$"] }, { hostname: "web-10" }, "", true],
  ["a pattern that does not match", { hostnames: ["^web-\\d+$"] }, { hostname: "db-1" }, "", false],
  ["a broken pattern", { hostnames: ["web-("] }, { hostname: "web-1" }, "", false],
  ["all of several scopes", { idc: "a", hostnames: ["h"] }, { idc: "a", hostname: "h" }, "", true],
  ["one of several scopes", { idc: "a", hostnames: ["h"] }, { idc: "a", hostname: "x" }, "", false],
  ["a cluster without scopes", {}, { idc: "a" }, "", false],
  ["a cluster with empty scopes", { idc: "", location: "", cidrs: [], hostnames: [] }, {}, "", false],
];

for (const [name, scopes, facts, ip, matches] of rows) {
  Deno.test(`placeHost() ${matches ? "takes" : "passes over"} ${name}`, () => {
    assertEquals(placeHost(factsOf("h", facts), ip, [cluster(scopes), DEFAULT]), matches ? 2 : 1);
  });
}

Deno.test("placeHost() puts a seed where it is configured, else by scopes", () => {
  const clusters = [DEFAULT, cluster({ idc: "a" }), cluster({ idc: "b" }, 3)];
  assertEquals(placeHost(factsOf("seed1", { cluster_id: 3, idc: "a" }), "", clusters), 3);
  assertEquals(placeHost(factsOf("seed1", { cluster_id: 9, idc: "a" }), "", clusters), 2);
  assertEquals(placeHost(factsOf("normal", { cluster_id: 3, idc: "a" }), "", clusters), 2);
});

Deno.test("placeHost() takes the first of several that match, and none without a default", () => {
  assertEquals(placeHost(factsOf("h", { idc: "a" }), "", [cluster({ idc: "a" }, 5), cluster({ idc: "a" }, 4)]), 5);
  assertEquals(placeHost(factsOf("h"), "", [cluster({ idc: "a" })]), null);
  assertEquals(placeHost(factsOf("h"), "", []), null);
});
