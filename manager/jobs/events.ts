/**
 * The progress of one job as server-sent events: `progress` while it is
 * pending, at most two a second, then `outcome`, then the end. Ends without an
 * outcome when the job's record is removed, the reader leaves, or the manager stops.
 */
import type { Clock } from "../../peer/core/clock.ts";
import { LacewingError } from "../../peer/core/errors.ts";
import { hasEnded, type JobState } from "./job.ts";
import type { JobWatch } from "./watch.ts";

/** Least time between two events, milliseconds. */
const EVENT_MS_MIN = 500;
/** A comment keeps proxies from closing a quiet stream, milliseconds. */
const KEEP_ALIVE_MS = 15_000;

/**
 * The stream's bytes.
 *
 * @param read the job as it is now; `not_found` ends the stream
 * @param signal of the manager's stop
 * @param onEnd called once, whichever way the stream ends
 */
export function jobEvents(
  jobId: number,
  { read, watch, clock, signal, onEnd }: {
    read: () => Promise<{ status: JobState }>;
    watch: JobWatch;
    clock: Clock;
    signal: AbortSignal;
    onEnd: () => void;
  },
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const over = new AbortController();
  const ends = AbortSignal.any([signal, over.signal]);
  return new ReadableStream<Uint8Array>({
    start(controller) {
      const send = (text: string) => controller.enqueue(encoder.encode(text));
      follow({ jobId, read, watch, clock, signal: ends, send }).then(
        () => close(controller),
        (error) =>
          error instanceof LacewingError && error.code === "not_found" ? close(controller) : controller.error(error),
      ).finally(onEnd);
    },
    cancel() {
      over.abort();
    },
  });
}

async function follow({ jobId, read, watch, clock, signal, send }: {
  jobId: number;
  read: () => Promise<{ status: JobState }>;
  watch: JobWatch;
  clock: Clock;
  signal: AbortSignal;
  send: (text: string) => void;
}): Promise<void> {
  let changed = true;
  let notify = () => {};
  const stop = watch.onChange(jobId, () => {
    changed = true;
    notify();
  });
  try {
    while (!signal.aborted) {
      if (changed) {
        changed = false;
        const job = await read();
        if (signal.aborted) return;
        send(`event: ${hasEnded(job.status) ? "outcome" : "progress"}\ndata: ${JSON.stringify(job)}\n\n`);
        if (hasEnded(job.status)) return;
        await pause(EVENT_MS_MIN, clock, { signal });
      } else {
        const heard = new Promise<void>((resolve) => notify = resolve);
        await pause(KEEP_ALIVE_MS, clock, { signal, other: heard });
        if (!changed && !signal.aborted) send(": still there\n\n");
      }
    }
  } finally {
    stop();
  }
}

/** Waits for the time, the signal or what else comes first; leaves no timer behind. */
async function pause(ms: number, clock: Clock, { signal, other }: { signal: AbortSignal; other?: Promise<void> }) {
  const done = new AbortController();
  const slept = clock.sleep(ms, AbortSignal.any([done.signal, signal])).catch(() => {});
  await (other === undefined ? slept : Promise.race([slept, other]));
  done.abort();
  await slept;
}

function close(controller: ReadableStreamDefaultController): void {
  try {
    controller.close();
  } catch {
    // The reader has left already; there is nothing to close.
  }
}
