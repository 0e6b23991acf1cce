/**
 * The first request to an origin: learns how long the content is, whether
 * ranges work and which version it is, and keeps the answer, whose bytes are
 * the first pieces. A content whose length the origin does not say is gathered
 * in a temporary file first, because pieces need a length.
 */
import { startDigest } from "../core/digest.ts";
import type { Clock, Random } from "../core/clock.ts";
import { pieceRange } from "../core/piece.ts";
import type { Limiter } from "../core/rate_limit.ts";
import type { TaskMeta } from "../core/wire/scheduler.ts";
import type { Source, SourceBody } from "../source/source.ts";
import type { Traffic } from "./engine_deps.ts";
import { metaOf } from "./generation.ts";
import type { Session } from "./session.ts";
import { PROBE_LENGTH } from "./source_reader.ts";
import { LacewingError } from "../core/errors.ts";

const COPY_LENGTH = 256 * 1024;

export interface Probe {
  readonly meta: TaskMeta;
  /** The answer, where its bytes are of use for the first pieces. */
  readonly body: SourceBody | null;
  /** Pieces that the probe's lease covers. */
  readonly count: number;
  /** File with the whole content, where the length was not known. */
  readonly spool: string | null;
}

export async function probe(
  { url, headers }: { url: string; headers: readonly (readonly [string, string])[] },
  deps: {
    source: Source;
    clock: Clock;
    random: Random;
    tempDir: string;
    limiters: readonly Limiter[];
    traffic: Traffic;
    signal: AbortSignal;
  },
): Promise<Probe> {
  const { signal } = deps;
  const nonce = `u${Math.floor(deps.random() * 2 ** 48).toString(16)}${Date.now().toString(16)}`;
  const body = await deps.source.open({ url, headers, range: { offset: 0, length: PROBE_LENGTH } }, { signal });
  if (body.contentLength === null) {
    const { path, length } = await spool(body, deps);
    return {
      meta: metaOf({ url, contentLength: length, ranges: false, version: body.version }, nonce),
      body: null,
      count: 0,
      spool: path,
    };
  }
  const meta = metaOf({ url, contentLength: body.contentLength, ranges: body.ranges, version: body.version }, nonce);
  const total = Math.ceil(meta.content_length / meta.piece_length);
  const holdsAll = body.offset === 0 && (body.length === null || body.length >= meta.content_length);
  const usable = holdsAll || (meta.ranges && meta.piece_length <= PROBE_LENGTH);
  if (!usable) await body[Symbol.asyncDispose]();
  const covered = meta.ranges ? Math.max(1, Math.floor(PROBE_LENGTH / meta.piece_length)) : total;
  return { meta, body: usable ? body : null, count: Math.min(covered, total), spool: null };
}

/**
 * Hands what the probe brought to the session of its generation.
 *
 * @returns whether the lease goes on as a read of the answer's bytes
 */
export async function takeProbe(
  { meta, body, count, spool }: Probe,
  session: Session,
  leaseId: number,
): Promise<boolean> {
  if (spool !== null) await importSpool(spool, session);
  if (spool !== null || session.picker.pieceCount === 0) {
    await body?.[Symbol.asyncDispose]();
    return false;
  }
  session.lease({ leaseId, generation: meta.generation, first: 0, count }, body ?? undefined);
  return true;
}

/** Takes the pieces of a gathered content into the session's store and removes the file. */
export async function importSpool(path: string, session: Session): Promise<void> {
  try {
    using file = await Deno.open(path);
    const buffer = new Uint8Array(COPY_LENGTH);
    for (let number = 0; number < session.picker.pieceCount; number++) {
      const { offset, length } = pieceRange(number, session.layout);
      const digest = startDigest("sha256");
      let done = 0;
      while (done < length) {
        const read = await file.read(buffer.subarray(0, Math.min(buffer.length, length - done)));
        if (read === null) throw new LacewingError("file", `Cannot read ${path}: it ends at byte ${offset + done}`);
        digest.update(buffer.subarray(0, read));
        await session.store.write(buffer.subarray(0, read), offset + done);
        done += read;
      }
      session.acceptFromSource(number, digest.digest("hex"));
    }
  } finally {
    await Deno.remove(path).catch(() => {});
  }
}

async function spool(
  body: SourceBody,
  { tempDir, limiters, traffic, signal }: {
    tempDir: string;
    limiters: readonly Limiter[];
    traffic: Traffic;
    signal: AbortSignal;
  },
): Promise<{ path: string; length: number }> {
  await using _body = body;
  let path: string | null = null;
  try {
    await Deno.mkdir(tempDir, { recursive: true });
    path = await Deno.makeTempFile({ dir: tempDir, prefix: "unknown-length-" });
    using file = await Deno.open(path, { write: true });
    let length = 0;
    while (true) {
      const chunk = await body.read();
      signal.throwIfAborted();
      if (chunk === null) return { path, length };
      traffic.sourceBytes += chunk.length;
      for (const limiter of limiters) await limiter.take(chunk.length, signal);
      for (let at = 0; at < chunk.length;) at += await file.write(chunk.subarray(at));
      length += chunk.length;
    }
  } catch (error) {
    if (path !== null) await Deno.remove(path).catch(() => {});
    if (signal.aborted || error instanceof LacewingError) throw error;
    const full = error instanceof Error && /ENOSPC|os error 28|no space/i.test(error.message);
    throw new LacewingError(
      full ? "disk_full" : "file",
      `Cannot write ${path ?? tempDir}: ${error instanceof Error ? error.message : error}`,
      { cause: error },
    );
  }
}
