/**
 * The digest checks of one task, each done once however many requests ask for
 * it. Whole-content checks live as long as the task, those of a range as long
 * as the request.
 */
import { type Digest, formatDigest } from "../core/digest.ts";
import { LacewingError } from "../core/errors.ts";
import type { ByteRange } from "../core/piece.ts";
import { followDigest } from "./digest_follower.ts";
import type { Session } from "./session.ts";

export class Verifications {
  readonly #known = new Map<string, Promise<string>>();

  /** @param onMismatch the whole content has not the digest it should have */
  constructor(
    private readonly signal: AbortSignal,
    private readonly onMismatch: (session: Session, error: LacewingError) => void,
  ) {}

  /**
   * @returns the digest's text form, once all bytes are here and have it
   * @throws {LacewingError} `digest_mismatch`
   */
  verify(
    session: Session,
    { want, range }: { want: Digest; range: ByteRange },
    runSignal: AbortSignal,
  ): Promise<string> {
    const whole = range.length === session.layout.contentLength;
    const key = `${session.meta.generation} ${formatDigest(want)} ${range.offset}+${range.length}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const signal = whole ? this.signal : runSignal;
    const check = followDigest(session.store, {
      want,
      range,
      signal,
      pieceHeld: (number) => session.pieceHeld(number, signal),
      onArrival: (listener) => session.onArrival(listener),
    })
      .then((text) => {
        if (whole && session.isComplete) session.store.complete(text);
        return text;
      });
    check.catch((error) => {
      this.#known.delete(key);
      if (whole && error instanceof LacewingError && error.code === "digest_mismatch") this.onMismatch(session, error);
    });
    this.#known.set(key, check);
    return check;
  }
}
