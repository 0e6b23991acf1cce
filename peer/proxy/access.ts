/**
 * Remembers who may have what: contents are served from the cache or from
 * peers only to a client whose own credentials the origin has accepted for
 * them, within the last minute. A repository is one thing; any other URL
 * stands for itself. Answers that pass through teach it, so that a pull asks
 * nothing extra.
 *
 * Keeps: credentials only as digests; only what the origin said. An origin
 * that is away leaves what is public public, and nothing else.
 */
import type { Clock } from "../core/clock.ts";
import { sha256Hex } from "../core/digest.ts";
import { LacewingError } from "../core/errors.ts";
import type { Field } from "./http_message.ts";
import { PUBLIC_MS, type PublicRecord } from "./public_record.ts";

/** What a client asks for, and as whom. */
export interface Claim {
  /** What the answer holds for: `ORIGIN REPOSITORY`, or a URL. */
  readonly scope: string;
  readonly url: URL;
  /** The headers that the origin gets of this client: its credentials. */
  readonly fields: readonly Field[];
}

export interface AccessDeps {
  readonly clock: Clock;
  /** HEAD at the origin. @returns the status */
  readonly head: (claim: Claim, signal: AbortSignal) => Promise<number>;
  /** Opens and closes the first byte at the origin, redirects followed; rejects as a `Source` does. */
  readonly probe: (claim: Claim, signal: AbortSignal) => Promise<void>;
  /** What was public before this process began. */
  readonly publics: PublicRecord;
}

/** INTERFACE section 4: how long an origin's word holds. */
const HOLDS_MS = 60_000;
const REMEMBERED_MAX = 10_000;
const TRIES_MAX = 3;
const PAUSE_MS = 200;

export class Access {
  /** When the origin accepted a client for a scope, oldest first. */
  readonly #accepted = new Map<string, number>();
  readonly #asking = new Map<string, Promise<boolean>>();

  constructor(private readonly deps: AccessDeps) {}

  /** The origin answered this claim, on whatever path inside its scope. */
  learn(claim: Pick<Claim, "scope" | "fields">, status: number): void {
    if (status >= 200 && status < 300) this.#accept(claim);
    else if (status === 401 || status === 403) {
      this.#accepted.delete(keyOf(claim));
      this.#note(claim, false);
    }
  }

  /** Whether the origin accepts the claim; asks it when that is not known. Rejects with `signal.reason` only. */
  async isAccepted(claim: Claim, signal: AbortSignal): Promise<boolean> {
    const key = keyOf(claim);
    if (this.#isWithin(key, HOLDS_MS)) return true;
    // Of several requests at once (a client opens all its blobs together) one asks; the others ask for
    // themselves only if it was refused, because a missing blob says nothing of the next.
    const asking = this.#asking.get(key);
    if (asking !== undefined && await asking.catch(() => false)) return true;
    signal.throwIfAborted();
    const own = this.#ask(claim, signal);
    this.#asking.set(key, own);
    try {
      return await own;
    } finally {
      if (this.#asking.get(key) === own) this.#asking.delete(key);
    }
  }

  /** Whether the claim may be served while the origin is away: it was accepted just now, or is public. */
  isKnown(claim: Pick<Claim, "scope" | "fields">): boolean {
    const [key, isAnonymous] = [keyOf(claim), claim.fields.length === 0];
    return this.#isWithin(key, isAnonymous ? PUBLIC_MS : HOLDS_MS) || (isAnonymous && this.deps.publics.isPublic(key));
  }

  async #ask(claim: Claim, signal: AbortSignal): Promise<boolean> {
    try {
      const status = await this.#head(claim, signal);
      this.learn(claim, status);
      if (status >= 200 && status < 300) return true;
      if (status === 429 || status >= 500 && status !== 501) return this.isKnown(claim);
      // A redirect says nothing of who may follow it, and signed URLs are bound to GET.
      const isOpen = (status >= 300 && status < 400) || status === 405 || status === 501 ||
        (status === 403 && claim.url.search !== "");
      if (!isOpen) return false;
      await this.deps.probe(claim, signal);
      this.#accept(claim);
      return true;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof LacewingError)) throw error;
      return error.code !== "source_refused" && error.code !== "source_not_found" && this.isKnown(claim);
    }
  }

  /** An origin that stumbles is asked again: the client would take the failure for the blob's. */
  async #head(claim: Claim, signal: AbortSignal): Promise<number> {
    for (let attempt = 1;; attempt++) {
      const isLast = attempt >= TRIES_MAX || this.isKnown(claim);
      try {
        const status = await this.deps.head(claim, signal);
        if (isLast || status < 500 || status === 501) return status;
      } catch (error) {
        signal.throwIfAborted();
        if (isLast || !(error instanceof LacewingError) || error.code !== "network") throw error;
      }
      await this.deps.clock.sleep(PAUSE_MS * 2 ** (attempt - 1), signal);
    }
  }

  #accept(claim: Pick<Claim, "scope" | "fields">): void {
    const key = keyOf(claim);
    this.#note(claim, true);
    this.#accepted.delete(key);
    this.#accepted.set(key, this.deps.clock.nowMs());
    for (const oldest of this.#accepted.keys()) {
      if (this.#accepted.size <= REMEMBERED_MAX) break;
      this.#accepted.delete(oldest);
    }
  }

  #note(claim: Pick<Claim, "scope" | "fields">, isPublic: boolean): void {
    if (claim.fields.length === 0) this.deps.publics.note(keyOf(claim), isPublic);
  }

  #isWithin(key: string, ms: number): boolean {
    const atMs = this.#accepted.get(key);
    return atMs !== undefined && this.deps.clock.nowMs() - atMs < ms;
  }
}

function keyOf({ scope, fields }: Pick<Claim, "scope" | "fields">): string {
  const headers = fields.map(([name, value]) => [name.toLowerCase(), value]);
  return sha256Hex(JSON.stringify([scope, headers]));
}
