import { assert, assertEquals, assertRejects } from "@std/assert";
import { chunkLengthAt, RateLimiter } from "../../../../peer/core/rate_limit.ts";
import { FakeClock, settle } from "./fake_clock.ts";

const KB = 1000;
const MB = 1000 * KB;

/** A stream that takes chunks for as long as it is let, and counts its bytes. */
function startStream(limiter: RateLimiter, chunkLength: number) {
  const stream = { bytes: 0, stopped: false };
  const run = async () => {
    while (!stream.stopped) {
      await limiter.take(chunkLength);
      if (!stream.stopped) stream.bytes += chunkLength;
    }
  };
  const ended = run();
  const stop = async () => {
    stream.stopped = true;
    limiter.setRate(0);
    await ended;
  };
  return { stream, stop };
}

/** Whether a promise has resolved after all that is due has run. */
async function isDone(promise: Promise<void> | undefined): Promise<boolean> {
  let done = false;
  promise?.then(() => done = true, () => {});
  await settle();
  return done || promise === undefined;
}

const HONEST: [string, number, number][] = [
  ["100 KB/s", 100 * KB, 4 * KB],
  ["10 MB/s", 10 * MB, 64 * 1024],
  ["200 MB/s", 200 * MB, 1024 * 1024],
  ["100 KB/s in chunks larger than the burst", 100 * KB, 13 * KB],
];
for (const [name, rate, chunkLength] of HONEST) {
  Deno.test(`a stream at ${name} gets what the rate says within 3% over 5 s`, async () => {
    const clock = new FakeClock();
    const { stream, stop } = startStream(new RateLimiter(clock, rate), chunkLength);
    await clock.advance(5000);
    const { bytes } = stream;
    await stop();
    assert(Math.abs(bytes / (rate * 5) - 1) <= 0.03, `${bytes} of ${rate * 5} B`);
  });
}

Deno.test("what a stream gets in any later second is the rate: debt is paid, not forgotten", async () => {
  const clock = new FakeClock();
  const { stream, stop } = startStream(new RateLimiter(clock, 100 * KB), 7 * KB);
  await clock.advance(1000);
  for (let second = 0; second < 20; second++) {
    const before = stream.bytes;
    await clock.advance(1000);
    assert(Math.abs(stream.bytes - before - 100 * KB) <= 7 * KB);
  }
  await stop();
});

Deno.test("two streams on one limiter get the same, and together the rate", async () => {
  const clock = new FakeClock();
  const limiter = new RateLimiter(clock, MB);
  const one = startStream(limiter, 16 * KB);
  await clock.advance(300);
  const other = startStream(limiter, 16 * KB);
  const before = one.stream.bytes;
  await clock.advance(5000);
  const [first, second] = [one.stream.bytes - before, other.stream.bytes];
  await Promise.all([one.stop(), other.stop()]);
  assert(Math.abs(first - second) <= 16 * KB, `${first} and ${second}`);
  assert(Math.abs((first + second) / (5 * MB) - 1) <= 0.03);
});

Deno.test("waiters are served in the order of their calls", async () => {
  const clock = new FakeClock();
  const limiter = new RateLimiter(clock, 1000);
  const order: number[] = [];
  for (let number = 0; number < 5; number++) limiter.take(500)!.then(() => order.push(number));
  await clock.advance(10_000);
  assertEquals(order, [0, 1, 2, 3, 4]);
});

Deno.test("after a pause no more than 0.05 s of the rate passes at once", async () => {
  const clock = new FakeClock();
  const limiter = new RateLimiter(clock, 1000);
  await clock.advance(60_000);
  assert(await isDone(limiter.take(50)));
  const next = limiter.take(1);
  assert(!await isDone(next));
  await clock.advance(1);
  assert(await isDone(next));
});

Deno.test("a rate of 0 lets everything pass at once", () => {
  const limiter = new RateLimiter(new FakeClock(), 0);
  assertEquals(limiter.bytesPerSecond, 0);
  for (let turn = 0; turn < 1000; turn++) assertEquals(limiter.take(1e12), undefined);
});

Deno.test("taking nothing does not wait, nor does it jump the queue", async () => {
  const clock = new FakeClock();
  const limiter = new RateLimiter(clock, 1000);
  assert(await isDone(limiter.take(0)));
  const large = limiter.take(1100);
  const nothing = limiter.take(0);
  assert(!await isDone(nothing));
  await clock.advance(1100);
  assert(await isDone(large) && await isDone(nothing));
});

Deno.test("setRate() changes what a stream gets from then on", async () => {
  const clock = new FakeClock();
  const limiter = new RateLimiter(clock, 100 * KB);
  const { stream, stop } = startStream(limiter, 4 * KB);
  await clock.advance(2000);
  limiter.setRate(MB);
  assertEquals(limiter.bytesPerSecond, MB);
  const before = stream.bytes;
  await clock.advance(5000);
  const fast = stream.bytes - before;
  limiter.setRate(50 * KB);
  const between = stream.bytes;
  await clock.advance(5000);
  const slow = stream.bytes - between;
  await stop();
  assert(Math.abs(fast / (5 * MB) - 1) <= 0.03, `${fast} B`);
  assert(Math.abs(slow / (250 * KB) - 1) <= 0.03, `${slow} B`);
});

Deno.test("setRate() reaches who waits already: an hour of waiting becomes seconds", async () => {
  const clock = new FakeClock();
  const limiter = new RateLimiter(clock, 1);
  const waiting = limiter.take(3600);
  assert(!await isDone(waiting));
  limiter.setRate(1800);
  await clock.advance(1999);
  assert(!await isDone(waiting));
  await clock.advance(2);
  assert(await isDone(waiting));
});

Deno.test("setRate(0) lets all who wait pass at once, and what passed is no debt later", async () => {
  const clock = new FakeClock();
  const limiter = new RateLimiter(clock, 1);
  const waiting = [limiter.take(1e9), limiter.take(1e9)];
  assert(!await isDone(waiting[0]));
  limiter.setRate(0);
  await Promise.all(waiting);
  assertEquals(clock.sleeping, 0);
  limiter.setRate(1000);
  const next = limiter.take(10);
  await clock.advance(20);
  assert(await isDone(next));
});

Deno.test("setRate() from 0 begins without savings", async () => {
  const clock = new FakeClock();
  const limiter = new RateLimiter(clock, 0);
  await clock.advance(60_000);
  limiter.setRate(1000);
  const first = limiter.take(500);
  await clock.advance(499);
  assert(!await isDone(first));
  await clock.advance(1);
  assert(await isDone(first));
});

Deno.test("an abort rejects with its reason and gives the bytes back", async () => {
  const clock = new FakeClock();
  const limiter = new RateLimiter(clock, 1000);
  const controller = new AbortController();
  const reason = new Error("over");
  const aborted = assertRejects(() => limiter.take(100_000, controller.signal)!);
  await clock.advance(100);
  controller.abort(reason);
  assertEquals(await aborted, reason);
  assertEquals(clock.sleeping, 0);
  // The next one waits for itself only, not for the 100 s of the aborted one.
  const next = limiter.take(100);
  await clock.advance(100);
  assert(await isDone(next));
});

Deno.test("an abort is heard at once by who waits behind others, and takes nothing", async () => {
  const clock = new FakeClock();
  const limiter = new RateLimiter(clock, 1000);
  const first = limiter.take(10_100);
  const controller = new AbortController();
  const reason = new Error("over");
  const aborted = assertRejects(() => limiter.take(1e9, controller.signal)!);
  const last = limiter.take(1000);
  await settle();
  controller.abort(reason);
  assertEquals(await aborted, reason);
  assert(!await isDone(first));
  await clock.advance(11_100);
  assert(await isDone(first) && await isDone(last));
});

for (const rate of [0, 1000]) {
  Deno.test(`take() with a signal that is aborted already rejects, at a rate of ${rate}`, async () => {
    const limiter = new RateLimiter(new FakeClock(), rate);
    const reason = new Error("over");
    assertEquals(await assertRejects(() => limiter.take(1, AbortSignal.abort(reason))!), reason);
    assert(await isDone(limiter.take(1)));
  });
}

Deno.test("take() leaves no listener on a signal that outlives it", async () => {
  const clock = new FakeClock();
  const limiter = new RateLimiter(clock, 1000);
  const { signal } = new AbortController();
  let listeners = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => (listeners += 1, add(...args));
  signal.removeEventListener = (...args: Parameters<typeof remove>) => (listeners -= 1, remove(...args));
  for (let turn = 0; turn < 5; turn++) limiter.take(500, signal);
  await clock.advance(10_000);
  assertEquals(listeners, 0);
});

/** As `startStream`, through a share of the limiter, over so many connections. */
function startShare(limiter: RateLimiter, { chunkLength, connections }: { chunkLength: number; connections: number }) {
  const share = limiter.share();
  const stream = { bytes: 0, stopped: false };
  const run = async () => {
    while (!stream.stopped) {
      await share.take(chunkLength);
      if (!stream.stopped) stream.bytes += chunkLength;
      // What is received is written before more is taken.
      for (let turn = 0; turn < 3; turn++) await Promise.resolve();
    }
  };
  const ended = Promise.all(Array.from({ length: connections }, run));
  const stop = async () => {
    stream.stopped = true;
    limiter.setRate(0);
    await ended;
  };
  return { stream, stop };
}

const SHARES: [string, { chunkLength: number; connections: number }, { chunkLength: number; connections: number }][] = [
  ["alike", { chunkLength: 16 * KB, connections: 1 }, { chunkLength: 16 * KB, connections: 1 }],
  ["with 1 and 4 connections", { chunkLength: 16 * KB, connections: 1 }, { chunkLength: 16 * KB, connections: 4 }],
  ["of small and large chunks", { chunkLength: 4 * KB, connections: 1 }, { chunkLength: 64 * KB, connections: 1 }],
  ["of small chunks and many large ones", { chunkLength: 4 * KB, connections: 1 }, {
    chunkLength: 64 * KB,
    connections: 8,
  }],
];
for (const [name, one, other] of SHARES) {
  Deno.test(`two shares ${name} get the same, and together the rate`, async () => {
    const clock = new FakeClock();
    const limiter = new RateLimiter(clock, 2 * MB);
    const streams = [startShare(limiter, one), startShare(limiter, other)];
    await clock.advance(5000);
    const [first, second] = streams.map(({ stream }) => stream.bytes) as [number, number];
    await Promise.all(streams.map((stream) => stream.stop()));
    assert(Math.abs(first / second - 1) <= 0.05, `${first} and ${second}`);
    assert(Math.abs((first + second) / (10 * MB) - 1) <= 0.03, `${first + second}`);
  });
}

Deno.test("a share that was away does not make up for it, and leaves all to the other", async () => {
  const clock = new FakeClock();
  const limiter = new RateLimiter(clock, MB);
  const one = startShare(limiter, { chunkLength: 16 * KB, connections: 1 });
  await clock.advance(10_000);
  const before = one.stream.bytes;
  assert(Math.abs(before / (10 * MB) - 1) <= 0.03);
  const other = startShare(limiter, { chunkLength: 16 * KB, connections: 1 });
  await clock.advance(5000);
  const [first, second] = [one.stream.bytes - before, other.stream.bytes];
  await Promise.all([one.stop(), other.stop()]);
  assert(Math.abs(first / second - 1) <= 0.05, `${first} and ${second}`);
});

Deno.test("an abort in one share leaves the other its turn", async () => {
  const clock = new FakeClock();
  const limiter = new RateLimiter(clock, 1000);
  const [one, other] = [limiter.share(), limiter.share()];
  assertEquals(one.bytesPerSecond, 1000);
  const controller = new AbortController();
  const aborted = assertRejects(() => one.take(1e9, controller.signal)!);
  const next = other.take(1000)!;
  controller.abort(new Error("over"));
  await aborted;
  await clock.advance(1000);
  assert(await isDone(next));
});

Deno.test("chunkLengthAt() takes a twentieth of a second, never tiny chunks, and all without a limit", () => {
  assertEquals(chunkLengthAt(0), Infinity);
  assertEquals(chunkLengthAt(1), 4096);
  assertEquals(chunkLengthAt(20 * MB), MB);
});
