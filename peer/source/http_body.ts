/**
 * The body of an origin's answer: counts its bytes against what was announced,
 * and ends a connection that sends nothing for too long while somebody waits.
 * A slow reader is nobody's fault: only time spent in `read` counts.
 */
import type { Clock } from "../core/clock.ts";
import { LacewingError } from "../core/errors.ts";
import type { AnswerFacts } from "./http_answer.ts";
import { shownUrl } from "./http_request.ts";
import type { SourceBody, SourceVersion } from "./source.ts";
import type { TransportAnswer } from "./transport.ts";

export interface BodyContext {
  readonly url: URL;
  readonly clock: Clock;
  readonly idleTimeoutMs: number;
  /** Ends the connection. */
  readonly abort: AbortController;
  /** Called once, when nothing of the body is under way any more. */
  readonly onEnd: () => void;
}

export class HttpBody implements SourceBody {
  readonly contentLength: number | null;
  readonly ranges: boolean;
  readonly version: SourceVersion;
  readonly offset: number;
  readonly length: number | null;
  readonly #answer: TransportAnswer;
  readonly #context: BodyContext;
  readonly #stopped = new AbortController();
  readonly #watch: Promise<void>;
  #received = 0;
  #waitingSinceMs: number | null = null;
  #ended = false;

  constructor(facts: AnswerFacts, answer: TransportAnswer, context: BodyContext) {
    this.contentLength = facts.contentLength;
    this.ranges = facts.ranges;
    this.version = facts.version;
    this.offset = facts.offset;
    this.length = facts.length;
    this.#answer = answer;
    this.#context = context;
    this.#watch = this.#watchIdle();
  }

  async read(): Promise<Uint8Array | null> {
    if (this.#ended) return null;
    try {
      const bytes = await this.#wait();
      this.#received += bytes?.length ?? 0;
      this.#checkLength(bytes === null);
      if (bytes === null) await this[Symbol.asyncDispose]();
      return bytes;
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    // All bytes are here, but their end was not read yet: reading it keeps the connection for the next request.
    if (this.#received === this.length && this.#answer.headers.has("content-length")) {
      await this.#answer.read().catch(() => null);
    }
    this.#stopped.abort();
    await this.#watch;
    await this.#answer.cancel();
    this.#context.onEnd();
  }

  async #wait(): Promise<Uint8Array | null> {
    this.#waitingSinceMs = this.#context.clock.nowMs();
    try {
      return await this.#answer.read();
    } finally {
      this.#waitingSinceMs = null;
    }
  }

  #checkLength(isEnd: boolean): void {
    if (this.length === null) return;
    const isWrong = isEnd ? this.#received !== this.length : this.#received > this.length;
    if (!isWrong) return;
    const fault = isEnd ? `ended after ${this.#received}` : `goes on after ${this.#received}`;
    throw new LacewingError(
      "network",
      `Cannot read ${shownUrl(this.#context.url)}: the body ${fault} of ${this.length} B`,
    );
  }

  async #watchIdle(): Promise<void> {
    const { clock, idleTimeoutMs, abort, url } = this.#context;
    try {
      for (;;) {
        const waitedMs = this.#waitingSinceMs === null ? 0 : clock.nowMs() - this.#waitingSinceMs;
        if (waitedMs >= idleTimeoutMs) break;
        await clock.sleep(idleTimeoutMs - waitedMs, this.#stopped.signal);
      }
    } catch {
      return;
    }
    const text = `Cannot read ${shownUrl(url)}: no byte for ${idleTimeoutMs / 1000} s after ${this.#received} B`;
    abort.abort(new LacewingError("timeout", text));
  }
}
