import { assertEquals, assertRejects } from "@std/assert";
import { type Digest, formatDigest, sha256Hex } from "../../../../peer/core/digest.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import type { Session } from "../../../../peer/task/session.ts";
import { Verifications } from "../../../../peer/task/verifications.ts";
import { storedContent } from "./stored_content.ts";

const WHOLE = { offset: 0, length: 40 };

/** A content whose pieces are all here, as much of a session as a check looks at, and how often it is read. */
async function checked({ held = [0, 1, 2] }: { held?: number[] } = {}) {
  const content = await storedContent({ size: 40, held });
  const arrived = Promise.withResolvers<void>();
  let reads = 0;
  const read = content.task.read.bind(content.task);
  content.task.read = (buffer, offset) => {
    reads += 1;
    return read(buffer, offset);
  };
  const session = {
    layout: content.layout,
    meta: content.meta,
    store: content.task,
    get isComplete() {
      return content.task.pieces.isFull;
    },
    onArrival: () => () => {},
    pieceHeld: (_: number, signal: AbortSignal) =>
      Promise.race([
        arrived.promise,
        new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
      ]),
  } as unknown as Session;
  const stop = new AbortController();
  const mismatches: LacewingError[] = [];
  const verifications = new Verifications(stop.signal, (_, error) => mismatches.push(error));
  const want: Digest = { algorithm: "sha256", hex: sha256Hex(content.bytes) };
  return { ...content, session, verifications, stop, mismatches, want, arrived, reads: () => reads };
}

const never = () => new AbortController().signal;

Deno.test("requests for one digest share one check, which marks the content as verified", async () => {
  const { session, verifications, want, task, reads } = await checked();
  const checks = [1, 2, 3].map(() => verifications.verify(session, { want, range: WHOLE }, never()));
  assertEquals(await Promise.all(checks), Array(3).fill(formatDigest(want)));
  assertEquals(await verifications.verify(session, { want, range: WHOLE }, never()), formatDigest(want));
  assertEquals([reads(), task.info.complete, task.info.verified], [3, true, formatDigest(want)]);
});

Deno.test("a wrong whole digest is told, and can be asked for again", async () => {
  const { session, verifications, want, mismatches, task } = await checked();
  const wrong: Digest = { ...want, hex: "0".repeat(64) };
  for (const count of [1, 2]) {
    const check = verifications.verify(session, { want: wrong, range: WHOLE }, never());
    assertEquals((await assertRejects(() => check, LacewingError) as LacewingError).code, "digest_mismatch");
    assertEquals(mismatches.length, count);
  }
  assertEquals([task.info.complete, task.info.verified], [false, null]);
});

Deno.test("a wrong digest of a range is the request's matter alone", async () => {
  const { session, verifications, want, mismatches } = await checked();
  const range = { offset: 0, length: 10 };
  await assertRejects(() => verifications.verify(session, { want, range }, never()), LacewingError);
  assertEquals(mismatches, []);
});

Deno.test("a right digest of a range does not make the content verified", async () => {
  const { session, verifications, bytes, task } = await checked();
  const want: Digest = { algorithm: "sha256", hex: sha256Hex(bytes.slice(3, 20)) };
  const range = { offset: 3, length: 17 };
  assertEquals(await verifications.verify(session, { want, range }, never()), formatDigest(want));
  assertEquals([task.info.complete, task.info.verified], [false, null]);
});

Deno.test("a whole check goes on when the request that began it is given up", async () => {
  const { session, verifications, want, hold, arrived } = await checked({ held: [0, 1] });
  const first = new AbortController();
  const check = verifications.verify(session, { want, range: WHOLE }, first.signal);
  first.abort(new DOMException("given up", "AbortError"));
  await hold(2);
  arrived.resolve();
  assertEquals(await check, formatDigest(want));
});

Deno.test("a range's check ends with its request, and every check with the task", async () => {
  const { session, verifications, want, stop, mismatches } = await checked({ held: [] });
  const first = new AbortController();
  const ranged = verifications.verify(session, { want, range: { offset: 0, length: 10 } }, first.signal);
  const whole = verifications.verify(session, { want, range: WHOLE }, never());
  first.abort(new DOMException("given up", "AbortError"));
  await assertRejects(() => ranged, DOMException, "given up");
  stop.abort(new DOMException("stopped", "AbortError"));
  await assertRejects(() => whole, DOMException, "stopped");
  assertEquals(mismatches, []);
});
