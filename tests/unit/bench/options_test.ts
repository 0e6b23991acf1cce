// The command line of the bench: tests/bench/options.ts
import { assert, assertEquals, assertThrows } from "@std/assert";
import { LacewingError } from "../../../peer/core/errors.ts";
import { readSettings } from "../../bench/options.ts";

Deno.test("readSettings() takes scenarios A and B with 16 hosts and 64 MiB where nothing is said", () => {
  const settings = readSettings([])!;
  assertEquals(settings.scenarios, ["a", "b"]);
  assertEquals([settings.peers, settings.size, settings.rounds, settings.speed], [16, 64 * 2 ** 20, 1, 1]);
  assertEquals(settings.against, ["bittorrent", "curl"]);
});

Deno.test("readSettings() knows the words swarm, pair, transfer, client, registry, nodes, sim and scale", () => {
  assertEquals(readSettings(["swarm", "--scenario", "K,h"])?.scenarios, ["k", "h"]);
  assertEquals(readSettings(["pair", "--size", "1GiB"])?.scenarios, ["i"]);
  assertEquals(readSettings(["pair", "--size", "1GiB,2GiB"])?.pairSizes, [2 ** 30, 2 ** 31]);
  assertEquals(readSettings(["transfer"])?.scenarios, ["transfer"]);
  assertEquals(readSettings(["transfer", "--size", "1GiB"])?.transferSize, 2 ** 30);
  assertEquals(readSettings(["client"])?.scenarios, ["client"]);
  assertEquals(readSettings(["registry"])?.scenarios, ["registry"]);
  assertEquals(readSettings(["registry", "--size", "50MiB"])?.imageSize, 50 * 2 ** 20);
  assertEquals(readSettings(["nodes"])?.scenarios, ["nodes"]);
  assertEquals(readSettings(["nodes", "--size", "22MiB"])?.nodesSize, 22 * 2 ** 20);
  assertEquals(readSettings(["nodes"])?.nodeCounts, [1, 2, 4, 8]);
  assertEquals(readSettings(["nodes", "--small"])?.nodeCounts, [2]);
  assertEquals(readSettings(["sim"])?.scenarios, ["sim"]);
  assertEquals(readSettings(["sim"])?.simHosts, [16, 256, 1000]);
  assertEquals(readSettings(["sim", "--hosts", "5,100000", "--pieces", "64"])?.simHosts, [5, 100_000]);
  assertEquals(readSettings(["sim", "--hosts", "5,100000", "--pieces", "64"])?.simPieces, 64);
  assertEquals(readSettings(["scale"])?.scenarios, ["scale"]);
  assertEquals(readSettings(["scale", "--members", "7", "--sockets", "3"])?.scaleMembers, [7]);
  assertEquals(readSettings(["scale", "--members", "7", "--sockets", "3"])?.scaleSockets, 3);
  assert(readSettings(["--scenario", "all"])!.scenarios.length >= 10);
});

Deno.test("readSettings() --small is small unless more is asked for", () => {
  const small = readSettings(["--small"])!;
  assertEquals([small.peers, small.size], [4, 8 * 2 ** 20]);
  assertEquals(readSettings(["--small", "--peers", "6"])?.peers, 6);
  assertEquals([small.simHosts, small.simPieces, small.scaleMembers, small.scaleSockets], [[64], 64, [1000], 50]);
  assert(small.scenarios.includes("sim") && small.scenarios.includes("scale"));
});

Deno.test("readSettings() is null when help is asked for", () => assertEquals(readSettings(["--help"]), null));

const WRONG = [
  ["--scenario", "z"],
  ["--scenario", ""],
  ["--peers", "0"],
  ["--peers", "65"],
  ["--peers", "many"],
  ["--size", "big"],
  ["--rounds", "1.5"],
  ["--speed", "0"],
  ["--speed", "fast"],
  ["sim", "--hosts", "16,0"],
  ["sim", "--hosts", "200001"],
  ["sim", "--pieces", "1.5"],
  ["scale", "--members", ""],
  ["scale", "--sockets", "many"],
  ["--against", "wget"],
  ["--daemon", "[]"],
  ["--daemon", '{"upload":1}'],
  ["--daemon", "{"],
  ["--strange"],
  ["race"],
  ["swarm", "client"],
];
for (const args of WRONG) {
  Deno.test(`readSettings() refuses ${args.join(" ")}`, () => {
    assertEquals(assertThrows(() => readSettings(args), LacewingError).code, "usage");
  });
}
