// The bench's hosts on this machine: tests/bench/network.ts, tests/bench/calibrate.ts
import { assert, assertEquals, assertThrows } from "@std/assert";
import { Calibration } from "../../bench/calibrate.ts";
import { BenchNetwork } from "../../bench/network.ts";
import { missing } from "../../bench/prerequisites.ts";
import { BenchProcess } from "../../bench/processes.ts";

const { reasons } = await missing();

/** Runs where namespaces can be made; elsewhere it says why it cannot. */
function networkTest(claim: string, test: () => Promise<void>): void {
  Deno.test(claim, async () => {
    if (reasons.length > 0) console.log(`skipped: ${reasons.join("; ")}`);
    else await test();
  });
}

networkTest("BenchNetwork limits what a host sends, counts it, and leaves nothing behind", async () => {
  const limit = 20e6;
  {
    const links = [{ name: "manager", up: 0, down: 0 }, { name: "p1", up: limit, down: 0 }];
    await using network = await BenchNetwork.create({ hosts: links });
    const { up, down } = await new Calibration().rates(network, links[1]!, "manager");
    // Headers take about 4%; a busy machine may take more.
    assert(up <= limit / 8 && up > 0.8 * limit / 8, `${up}`);
    assertEquals(down, Infinity);
    assert((await network.counters()).get("p1")!.sent > 1_000_000);
    assertThrows(() => network.address("nobody"), RangeError);
  }
  const { stdout } = await new Deno.Command("ip", { args: ["netns", "list"] }).output();
  assert(!new TextDecoder().decode(stdout).includes(`lwb${Deno.pid}-`));
});

networkTest("BenchProcess gives its lines, and its end when a line never comes", async () => {
  await using process = new BenchProcess("shell", ["sh", "-c", "echo one; echo two >&2; exit 3"]);
  assertEquals(await process.line((line) => line === "two"), "two");
  assertEquals(await process.ended, 3);
  const failure = await process.line((line) => line === "three").catch(String);
  assert(failure.includes("ended before the line came"));
});
