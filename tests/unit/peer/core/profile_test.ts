/** V8's profiles as pprof reads them. */
import { assert, assertEquals } from "@std/assert";
import { Profile } from "pprof-format";
import { type CallFrame, encodeCpuProfile, encodeHeapProfile, type HeapNode } from "../../../../peer/core/profile.ts";

function frame(functionName: string, lineNumber = 9, url = "file:///app/peer/engine.ts"): CallFrame {
  return { functionName, url, lineNumber, columnNumber: 2 };
}

const ROOT = frame("(root)", -1, "");

/** Every sample as its stack, outermost first, with its values; and the facts around. */
function read(bytes: Uint8Array) {
  const profile = Profile.decode(bytes);
  const text = (index: number | bigint) => profile.stringTable.strings[Number(index)];
  const functions = new Map(profile.function.map((fn) => [Number(fn.id), fn]));
  const locations = new Map(profile.location.map((location) => [Number(location.id), location]));
  return {
    types: profile.sampleType.map(({ type, unit }) => `${text(type)}/${text(unit)}`),
    period: Number(profile.period),
    timeNanos: BigInt(profile.timeNanos),
    durationNanos: Number(profile.durationNanos),
    comments: profile.comment.map(text),
    functions: profile.function.map((fn) => `${text(fn.name)} ${text(fn.filename)}:${fn.startLine}`),
    samples: profile.sample.map(({ locationId, value }) => ({
      stack: locationId.map((id) => text(functions.get(Number(locations.get(Number(id))!.line[0]!.functionId))!.name))
        .reverse().join(" > "),
      value: value.map(Number),
    })),
  };
}

const CPU = {
  nodes: [
    { id: 1, callFrame: ROOT, children: [2, 5, 6] },
    { id: 2, callFrame: frame("outer"), children: [3, 4] },
    { id: 3, callFrame: frame("inner", 19) },
    { id: 4, callFrame: frame("", 29) },
    { id: 5, callFrame: frame("(idle)", -1, "") },
    { id: 6, callFrame: frame("(garbage collector)", -1, "") },
  ],
  startTime: 5_000_000,
  endTime: 5_010_000,
  samples: [3, 3, 5, 4, 6, 2],
  timeDeltas: [100, 1000, 1500, 4000, 1000, 1200],
};

Deno.test("encodeCpuProfile() gives each stack its samples and the time until the next one", () => {
  const { types, period, samples } = read(encodeCpuProfile(CPU, { intervalMicros: 1000, nowMs: 0 }));
  assertEquals([types, period], [["samples/count", "cpu/nanoseconds"], 1_000_000]);
  assertEquals(samples, [
    { stack: "outer > inner", value: [2, 2_500_000] },
    { stack: "outer > (anonymous) engine.ts:30", value: [1, 1_000_000] },
    { stack: "(garbage collector)", value: [1, 1_200_000] },
    { stack: "outer", value: [1, 1_000_000] },
  ]);
});

Deno.test("encodeCpuProfile() says when it was taken, and each function once", () => {
  const nowMs = 1_700_000_000_000;
  const { timeNanos, durationNanos, functions } = read(encodeCpuProfile(CPU, { intervalMicros: 1000, nowMs }));
  assertEquals([timeNanos, durationNanos], [BigInt(nowMs - 10) * 1_000_000n, 10_000_000]);
  assertEquals(functions, [
    "inner /app/peer/engine.ts:20",
    "outer /app/peer/engine.ts:10",
    "(anonymous) engine.ts:30 /app/peer/engine.ts:30",
    "(garbage collector) :0",
  ]);
});

Deno.test("encodeCpuProfile() of a process that only waited is empty", () => {
  for (const samples of [[], [5, 5]]) {
    assertEquals(read(encodeCpuProfile({ ...CPU, samples }, { intervalMicros: 1000, nowMs: 0 })).samples, []);
  }
  const { nodes, startTime, endTime } = CPU;
  assertEquals(read(encodeCpuProfile({ nodes, startTime, endTime }, { intervalMicros: 1, nowMs: 0 })).samples, []);
});

Deno.test("encodeHeapProfile() gives each stack the bytes that it holds itself", () => {
  const leaf = (name: string, selfSize: number, children: HeapNode[] = []): HeapNode => ({
    callFrame: name === "(root)" ? ROOT : frame(name),
    selfSize,
    children,
  });
  const head = leaf("(root)", 0, [leaf("a", 0, [leaf("b", 1024), leaf("c", 0)]), leaf("d", 77, [leaf("a", 5)])]);
  const options = { intervalLength: 512, nowMs: 5, comments: ["rss 7 bytes"] };
  const { types, period, samples, comments } = read(encodeHeapProfile(head, options));
  assertEquals([types, period, comments], [["inuse_space/bytes"], 512, ["rss 7 bytes"]]);
  assertEquals(samples, [
    { stack: "a > b", value: [1024] },
    { stack: "d", value: [77] },
    { stack: "d > a", value: [5] },
  ]);
});

Deno.test("encodeHeapProfile() of nothing is a profile without samples", () => {
  const options = { intervalLength: 512, nowMs: 0, comments: [] };
  const bytes = encodeHeapProfile({ callFrame: ROOT, selfSize: 9, children: [] }, options);
  assert(bytes.length > 0);
  assertEquals(read(bytes).samples, []);
});
