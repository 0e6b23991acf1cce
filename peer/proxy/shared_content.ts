/**
 * Answers a GET with a content that the swarm shares: asks whether this client
 * may have it, opens its stream, and sends exactly the bytes asked for. What
 * cannot be had so passes through to the origin, whose own answer then counts.
 */
import { type Digest, formatDigest, parseDigest } from "../core/digest.ts";
import { LacewingError } from "../core/errors.ts";
import { type Field, valueOf } from "./http_message.ts";
import type { Access, Claim } from "./access.ts";
import type { ClientExchange } from "./client_exchange.ts";
import { ContentStream, type ContentStreamDeps } from "./content_stream.ts";
import { whoAsks } from "./origin_fields.ts";
import type { PassThrough } from "./pass_through.ts";
import { askedRange } from "./range_request.ts";
import { refusal } from "./refusals.ts";

export interface SharedContentDeps extends ContentStreamDeps {
  /** Null where everyone may have what is here. */
  readonly access: Access | null;
  readonly pass: PassThrough;
  /** What the origin called a content, where it was asked; else null. */
  readonly contentType: (url: URL) => string | null;
}

export interface Content {
  readonly url: URL;
  readonly filter: string;
  readonly tag: string;
  /** What an origin's acceptance of this client holds for. */
  readonly scope: string;
  /** `algorithm:hex` that the URL promises, or null. */
  readonly digest: string | null;
  /** Further fields of the answer. */
  readonly fields: readonly Field[];
  /** What to ask with in place of the client's fields after the origin's 401, or null where that is the last word. */
  readonly afterRefusal: (() => Promise<readonly Field[] | null>) | null;
}

/** Bounds of the messages between hosts. */
const [URL_LENGTH_MAX, FILTER_LENGTH_MAX, TAG_LENGTH_MAX] = [8192, 1024, 256];
/** W3C Trace Context, version 00. */
const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** A part of a content cannot be checked: none is given for so long after the whole was found wrong. */
const WRONG_MS = 60_000;
const WRONG_MAX = 1000;

export class SharedContent {
  /** URLs whose contents were found wrong, and until when that counts. */
  readonly #wrong = new Map<string, number>();

  constructor(private readonly deps: SharedContentDeps) {}

  async serve(exchange: ClientExchange, content: Content): Promise<void> {
    const { access } = this.deps;
    const { fields } = exchange.head;
    // What schedulers and neighbours would refuse to hear of is nobody's business but the origin's.
    if (isOverlong(content)) return await this.#pass(exchange, content);
    const claim: Claim = { scope: content.scope, url: content.url, fields: whoAsks(fields) };
    if (access !== null && !await access.isAccepted(claim, exchange.signal)) return await this.#pass(exchange, content);
    try {
      await this.#stream(exchange, content, claim);
    } catch (error) {
      if (error instanceof LacewingError && error.code === "digest_mismatch") this.#foundWrong(content);
      // What it accepted a moment ago has run out: the next request shall hear so before it is given anything.
      if (error instanceof LacewingError && error.code === "source_refused") access?.learn(claim, 401);
      if (exchange.isBegun || exchange.signal.aborted || !(error instanceof LacewingError)) throw error;
      if (error.code === "digest_mismatch") {
        const { status, fields, body } = refusal(502, "DIGEST_INVALID", error.message);
        return await exchange.send(status, fields, body);
      }
      this.deps.log.info("a content passes through", { error });
      await this.#pass(exchange, content);
    }
  }

  async #stream(exchange: ClientExchange, content: Content, claim: Claim): Promise<void> {
    const { fields } = exchange.head;
    const etag = content.digest === null ? null : `"${content.digest}"`;
    const range = askedRange(fields, etag);
    if (range !== null && this.#isWrong(content)) {
      throw new LacewingError("digest_mismatch", "Cannot give a part of the content: the whole was wrong just now");
    }
    const traceparent = valueOf(fields, "traceparent");
    await using stream = new ContentStream(this.deps, {
      url: content.url.href,
      headers: claim.fields,
      tag: content.tag,
      filter: content.filter,
      // A request's digest is that of the bytes it asks for.
      digest: range === null ? digestOf(content) : null,
      range,
      inOrder: true,
      disableBackSource: false,
      rateLimitBytesPerSecond: 0,
      ...(traceparent === null || !TRACEPARENT.test(traceparent) ? {} : { traceparent }),
    }, exchange.signal);
    const answer = await stream.open();
    const chunks = stream.read();
    // Nothing is said before the first bytes are here: until then another answer is possible.
    const first = await chunks.next();
    const type = content.digest === null ? this.deps.contentType(content.url) : null;
    exchange.begin(answer.status, [
      ...describe(content, { etag, type }),
      ...answer.fields,
      ...whence(stream),
      ...content.fields,
    ]);
    if (!first.done) {
      await exchange.write(first.value);
      for await (const chunk of chunks) await exchange.write(chunk);
    }
    await exchange.end();
    if (range === null) this.#wrong.delete(content.url.href);
  }

  #isWrong({ url }: Content): boolean {
    return this.deps.clock.nowMs() < (this.#wrong.get(url.href) ?? 0);
  }

  #foundWrong(content: Content): void {
    if (this.#isWrong(content)) return;
    this.#wrong.delete(content.url.href);
    this.#wrong.set(content.url.href, this.deps.clock.nowMs() + WRONG_MS);
    for (const oldest of this.#wrong.keys()) {
      if (this.#wrong.size <= WRONG_MAX) break;
      this.#wrong.delete(oldest);
    }
  }

  async #pass(exchange: ClientExchange, content: Content): Promise<void> {
    const { scope, url, fields, afterRefusal } = content;
    const passage = { url, scope, extra: fields, isIdentity: true, digest: digestOf(content) };
    using answer = await this.deps.pass.ask(exchange, passage);
    const others = answer.head.status === 401 && afterRefusal !== null ? await afterRefusal() : null;
    if (others === null) return await this.deps.pass.give(exchange, passage, answer);
    exchange.askWith(others);
    await this.serve(exchange, { ...content, afterRefusal: null });
  }
}

function isOverlong({ url, filter, tag }: Content): boolean {
  return url.href.length > URL_LENGTH_MAX || filter.length > FILTER_LENGTH_MAX || tag.length > TAG_LENGTH_MAX;
}

function digestOf({ digest }: Content): Digest | null {
  return digest === null ? null : parseDigest(digest);
}

function describe({ digest }: Content, { etag, type }: { etag: string | null; type: string | null }): Field[] {
  const fields: Field[] = [["Content-Type", type ?? "application/octet-stream"], ["Accept-Ranges", "bytes"]];
  if (digest === null || etag === null) return fields;
  return [
    ...fields,
    ["Docker-Content-Digest", formatDigest(parseDigest(digest))],
    ["Docker-Distribution-Api-Version", "registry/2.0"],
    ["ETag", etag],
  ];
}

function whence(stream: ContentStream): Field[] {
  const task: Field[] = stream.taskId === null ? [] : [["X-Lacewing-Task", stream.taskId]];
  return [...task, ["X-Lacewing-Source", stream.source]];
}
