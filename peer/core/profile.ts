/**
 * Turns V8's profiles into those of pprof (profile.proto of google/pprof), so
 * that `go tool pprof` and everything around it reads them. Pure. Only the
 * JavaScript thread is in them: not the threads that read files and do TLS, and
 * of memory what V8 manages, not the bytes of buffers.
 */
import { Function, Line, Location, Mapping, Profile, Sample, StringTable, ValueType } from "pprof-format";

/** Where a function begins, of the inspector's protocol: lines and columns from 0, -1 where unknown. */
export interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

/** `Profiler.Profile`, as far as it is used; times in microseconds. */
export interface CpuProfile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: CallFrame; readonly children?: number[] }[];
  readonly startTime: number;
  readonly endTime: number;
  /** Node on top of the stack, sample by sample. */
  readonly samples?: readonly number[];
  /** Time since the sample before (the first: since the start). */
  readonly timeDeltas?: readonly number[];
}

/** `HeapProfiler.SamplingHeapProfileNode`, as far as it is used. */
export interface HeapNode {
  readonly callFrame: CallFrame;
  /** Bytes that live objects allocated here take, estimated from the samples. */
  readonly selfSize: number;
  readonly children: readonly HeapNode[];
}

const SECOND_NANOS = 1_000_000_000;

/**
 * @param options.intervalMicros between samples
 * @param options.nowMs Unix time of the end
 * @returns a profile with `samples` (count) and `cpu` (nanoseconds), not compressed
 */
export function encodeCpuProfile(
  { nodes, samples = [], timeDeltas = [], startTime, endTime }: CpuProfile,
  { intervalMicros, nowMs }: { intervalMicros: number; nowMs: number },
): Uint8Array {
  const book = new Book();
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const found = new Map<number, { count: number; micros: number }>();
  for (const [index, id] of samples.entries()) {
    const total = found.get(id) ?? { count: 0, micros: 0 };
    total.count += 1;
    // A sample lasts until the next one.
    total.micros += timeDeltas[index + 1] ?? intervalMicros;
    found.set(id, total);
  }
  for (const [id, { count, micros }] of found) {
    // Waiting is no use of a processor.
    if (frames.get(id)?.functionName === "(idle)") continue;
    const stack: CallFrame[] = [];
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) stack.push(frames.get(at)!);
    book.add(stack, [count, Math.round(micros) * 1000]);
  }
  const durationMicros = endTime - startTime;
  return book.encode({
    sampleTypes: [["samples", "count"], ["cpu", "nanoseconds"]],
    periodType: ["cpu", "nanoseconds"],
    period: intervalMicros * 1000,
    startMs: nowMs - durationMicros / 1000,
    durationMicros,
    comments: [],
  });
}

/**
 * @param options.comments lines that `go tool pprof -comments` shows
 * @returns a profile with `inuse_space` (bytes), not compressed
 */
export function encodeHeapProfile(
  head: HeapNode,
  { intervalLength, nowMs, comments }: { intervalLength: number; nowMs: number; comments: readonly string[] },
): Uint8Array {
  const book = new Book();
  const walk = (node: HeapNode, above: readonly CallFrame[]) => {
    const stack = [node.callFrame, ...above];
    if (node.selfSize > 0) book.add(stack, [node.selfSize]);
    for (const child of node.children) walk(child, stack);
  };
  walk(head, []);
  return book.encode({
    sampleTypes: [["inuse_space", "bytes"]],
    periodType: ["space", "bytes"],
    period: intervalLength,
    startMs: nowMs,
    durationMicros: 0,
    comments,
  });
}

interface Facts {
  readonly sampleTypes: readonly (readonly [type: string, unit: string])[];
  readonly periodType: readonly [type: string, unit: string];
  readonly period: number;
  readonly startMs: number;
  readonly durationMicros: number;
  readonly comments: readonly string[];
}

/** Gathers stacks; each text, function and location is in the profile once. */
class Book {
  readonly #strings = new StringTable();
  readonly #locations: Location[] = [];
  readonly #functions: Function[] = [];
  readonly #ids = new Map<string, number>();
  readonly #samples: Sample[] = [];

  /** @param stack the innermost frame first */
  add(stack: readonly CallFrame[], value: number[]): void {
    const locationId = stack.filter(({ functionName }) => functionName !== "(root)").map((frame) => this.#id(frame));
    if (locationId.length > 0) this.#samples.push(new Sample({ locationId, value }));
  }

  encode({ sampleTypes, periodType, period, startMs, durationMicros, comments }: Facts): Uint8Array {
    const type = ([name, unit]: readonly [string, string]) =>
      new ValueType({ type: this.#strings.dedup(name), unit: this.#strings.dedup(unit) });
    return new Profile({
      sampleType: sampleTypes.map(type),
      sample: this.#samples,
      // Without it pprof looks for a program to read the names from.
      mapping: [new Mapping({ id: 1, filename: this.#strings.dedup("lacewing"), hasFunctions: true })],
      location: this.#locations,
      function: this.#functions,
      periodType: type(periodType),
      period,
      timeNanos: BigInt(Math.round(startMs)) * BigInt(SECOND_NANOS / 1000),
      durationNanos: Math.round(durationMicros) * 1000,
      comment: comments.map((line) => this.#strings.dedup(line)),
      stringTable: this.#strings,
    }).encode();
  }

  #id(frame: CallFrame): number {
    const { functionName, url, lineNumber, columnNumber } = frame;
    const key = `${functionName} ${url}:${lineNumber}:${columnNumber}`;
    const known = this.#ids.get(key);
    if (known !== undefined) return known;
    const id = this.#ids.size + 1;
    this.#ids.set(key, id);
    const name = this.#strings.dedup(nameOf(frame));
    const line = Math.max(0, lineNumber + 1);
    const filename = this.#strings.dedup(url.replace(/^file:\/\//, ""));
    this.#functions.push(new Function({ id, name, systemName: name, filename, startLine: line }));
    this.#locations.push(new Location({ id, mappingId: 1, line: [new Line({ functionId: id, line })] }));
    return id;
  }
}

/** pprof adds up by name: functions without one would all be the same. */
function nameOf({ functionName, url, lineNumber }: CallFrame): string {
  if (functionName !== "") return functionName;
  return `(anonymous) ${url.slice(url.lastIndexOf("/") + 1)}:${lineNumber + 1}`;
}
