// What goes wrong, and that it costs little: everybody alive ends with the right pieces.
import { assert } from "@std/assert";
import { coldWave, mbit, MiB } from "./config.ts";
import { expectSwarm, expectSwarms } from "./expect.ts";

Deno.test("4 of 16 hosts die half-way: the others end within 1.2 × the bound", () => {
  const kills = [{ atMs: 6_000, count: 4, backAfterMs: null }];
  const config = coldWave(16, { kills, watchMs: 250 });
  expectSwarms(config, 8, { stretch: 1.2, originCopies: 1.15, mean: { originCopies: 1.05 } });
});

Deno.test("4 of 16 hosts die half-way and 2 come back: what was on their disks counts", () => {
  const kills = [{ atMs: 6_000, count: 2, backAfterMs: null }, { atMs: 6_000, count: 2, backAfterMs: 2_000 }];
  const config = coldWave(16, { kills, watchMs: 250 });
  expectSwarms(config, 8, { stretch: 1.3, originCopies: 1.15, mean: { originCopies: 1.05 } });
});

Deno.test("in a sparse graph a sixth dies every second and a half: no island, nobody starves", () => {
  const kills = [1, 2, 3, 4, 5, 6].map((wave) => ({
    atMs: wave * 1_500,
    count: 10,
    backAfterMs: wave % 2 === 0 ? 1_500 : null,
  }));
  const config = coldWave(64, { kills, watchMs: 100 });
  expectSwarm(config, { stretch: 1.6, originCopies: 1.1, waste: 0.05, idleMs: 2_000 });
});

for (const [hosts, liars] of [[3, 1], [16, 2], [64, 4]] as const) {
  Deno.test(`${liars} of ${hosts} hosts claim everything and send rubbish: nobody keeps a wrong piece`, () => {
    const config = coldWave(hosts, { liars, watchMs: 250, contentLength: 32 * MiB });
    expectSwarm(config, { stretch: 1.3, originCopies: 1.02, waste: 0.1 });
  });
}

Deno.test("one transfer in fifty breaks off: that is what it costs", () => {
  expectSwarm(coldWave(16, { loss: 0.02 }), { stretch: 1.15, originCopies: 1.02, waste: 0.05 });
});

Deno.test("a host with a tenth of the uplink holds up the others no more than twice on average", () => {
  // It reads its share from the origin like all, and nobody else has those pieces.
  const upRate = (index: number) => mbit(index === 0 ? 5 : 50);
  const limits = { stretch: 2.3, originCopies: 1.05, idleMs: 5_000, mean: { stretch: 2 } };
  expectSwarms(coldWave(16, { upRate }), 16, limits);
});

for (const hosts of [16, 64]) {
  Deno.test(`the scheduler of ${hosts} hosts restarts half-way: everybody ends with the right pieces`, () => {
    // What a restart costs are the reads that the hosts begin by themselves while no scheduler answers.
    for (const [awayMs, stretch, originCopies] of [[300, 1.25, 1.15], [3_000, 1.7, 1.45]] as const) {
      const config = coldWave(hosts, { restarts: [{ atMs: 6_000, awayMs }], watchMs: 250 });
      expectSwarm(config, { stretch, originCopies });
    }
  });
}

Deno.test("the scheduler goes away near the end and never comes back: all end by themselves", () => {
  // Digests that the scheduler was gathering go with it: nobody can tell whether a neighbour's bytes of these pieces are right.
  const restarts = [{ atMs: 10_500, awayMs: 500_000 }];
  expectSwarms(coldWave(16, { restarts }), 8, { stretch: 2.25, originCopies: 2.0, mean: { stretch: 2.05 } });
});

Deno.test("each piece crosses a thin link between two racks once", () => {
  for (const [hosts, seed, copies] of [[4, 1, 1.2], [16, 1, 1.2], [16, 2, 1.2], [16, 3, 1.2], [32, 1, 1.3]] as const) {
    const config = coldWave(hosts, { racks: 2, crossRate: mbit(50), seed });
    const outcome = expectSwarm(config, { stretch: 1.4, originCopies: 1.05 });
    assert(outcome.crossCopies <= copies, `${hosts} hosts: ${outcome.crossCopies} copies crossed (SEED=${seed})`);
  }
});

Deno.test("a quarter of two racks dies half-way: the next in turn brings the pieces over", () => {
  const kills = [{ atMs: 6_000, count: 4, backAfterMs: null }];
  const config = coldWave(16, { racks: 2, crossRate: mbit(50), kills, watchMs: 250 });
  const { crossCopies } = expectSwarm(config, { stretch: 1.6, originCopies: 1.1 });
  assert(crossCopies <= 1.4, `${crossCopies} copies crossed`);
});

Deno.test("in a large task of four racks carriers die and come back: others carry, and nobody starves", () => {
  const kills = [1, 2, 3, 4].map((wave) => ({ atMs: wave * 2_000, count: 12, backAfterMs: wave % 2 ? 1_500 : null }));
  for (let seed = 1; seed <= 3; seed++) {
    const config = coldWave(96, { racks: 4, crossRate: mbit(150), kills, watchMs: 100, seed });
    const { crossCopies } = expectSwarm(config, { stretch: 1.6, originCopies: 1.1, waste: 0.05, idleMs: 2_000 });
    assert(crossCopies <= 1.2, `${crossCopies} copies crossed (SEED=${seed} replays it)`);
  }
});
