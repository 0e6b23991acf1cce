/**
 * Reads http and https origins: redirects, retries before the first byte,
 * timeouts, and who may be asked. What is sent and what an answer means is
 * decided in `http_request.ts`, `http_answer.ts` and `retry.ts`.
 *
 * Where requests go: a proxy of the environment (`HTTP_PROXY`, `HTTPS_PROXY`,
 * `ALL_PROXY`, `NO_PROXY`) is used as Deno's fetch does, and then resolves the
 * name. Without a proxy every address of the name is judged first; plain http
 * connects to a judged address itself, and so does https where private
 * networks are not allowed. What remains: https with private networks allowed
 * resolves the name again, and only its certificate vouches for the host.
 */
import type { Clock, Random } from "../core/clock.ts";
import { LacewingError } from "../core/errors.ts";
import { type Logger, silentLogger } from "../core/log.ts";
import { machineFacts } from "../core/machine.ts";
import { VERSION } from "../core/version.ts";
import { FetchTransport } from "./fetch_transport.ts";
import { type AnswerFacts, isPassing, readAnswer } from "./http_answer.ts";
import { HttpBody } from "./http_body.ts";
import {
  firstHop,
  type Hop,
  hostAndPort,
  isRedirect,
  nextHop,
  portOf,
  requestHeaders,
  shownUrl,
} from "./http_request.ts";
import type { FolderAnswer } from "./listing/http_folder.ts";
import type { Listing, ListRequest } from "./listing/listing.ts";
import { NodeTransport } from "./node_transport.ts";
import { bareHost, type Environment, proxyFor, withoutExceptions } from "./proxy_env.ts";
import { type Lookup, Resolver } from "./resolver.ts";
import { backoffMs, RETRY_AFTER_MAX_MS, retryAfterMs } from "./retry.ts";
import type { Source, SourceBody, SourceRequest } from "./source.ts";
import { discard, type Transport, type TransportAnswer, type TransportRequest } from "./transport.ts";

export interface HttpSourceConfig {
  /** PEM texts of authorities trusted besides the usual ones. */
  readonly caCerts: readonly string[];
  /** Certificates are not verified; direct connections only. */
  readonly insecure: boolean;
  /** Whether loopback and private addresses may be asked; link-local and metadata ones never are. */
  readonly allowPrivateNetworks: boolean;
  /** Default 10 s, for each address of a name. */
  readonly connectTimeoutMs?: number;
  /** Longest wait for the answer, and for each next byte of it. Default 30 s. */
  readonly idleTimeoutMs?: number;
  /** Further tries after the first one. Default 3. */
  readonly retries?: number;
}

export interface HttpSourceOptions {
  readonly config: HttpSourceConfig;
  readonly clock: Clock;
  readonly random: Random;
  readonly log?: Logger;
  /** Wall-clock milliseconds, for dates in Retry-After. */
  readonly now?: () => number;
  /** All addresses of a name; the system's resolver by default. */
  readonly lookup?: Lookup;
  /** Environment variables, for proxies; the process's own by default. */
  readonly env?: Environment;
}

const CONNECT_TIMEOUT_MS = 10_000;
const IDLE_TIMEOUT_MS = 30_000;
const RETRIES = 3;
/** A host that did not answer in the connect timeout is sent one more SYN: does it take connections at all? */
const PROBE_TIMEOUT_MS = 2000;

/** Reads http and https origins. Close bodies before the source. */
export function createHttpSource(options: HttpSourceOptions): Source & AsyncDisposable {
  return new HttpSource(options);
}

/** A way to send one hop's request. */
interface Route {
  readonly transport: Transport;
  /** IP address to connect to; null when the transport, or a proxy, resolves the name. */
  readonly address: string | null;
  /** Whether the origin itself is connected to. */
  readonly isDirect: boolean;
}

/** An answer with what ends it. */
interface Exchange {
  readonly answer: TransportAnswer;
  readonly abort: AbortController;
  /** Lets the caller's signal go. */
  readonly unlink: () => void;
}

/** What is asked of an origin, whatever hop it leads to. */
type Order = Pick<SourceRequest, "range"> & Pick<TransportRequest, "method" | "body">;

/** Makes of an answer what was wanted; throws what the answer means otherwise. */
type Reader<T> = (hop: Hop, exchange: Exchange) => T | Promise<T>;

/** What one try came to: what was wanted, or a failure that may pass with how long the origin asks to wait. */
type Outcome<T> =
  | { readonly result: T }
  | { readonly failure: LacewingError; readonly afterMs: number | null };

class HttpSource implements Source, AsyncDisposable {
  readonly #options: HttpSourceOptions;
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #env: Environment;
  readonly #resolver: Resolver;
  readonly #fetch: Transport;
  readonly #node: Transport;
  readonly #connectTimeoutMs: number;
  readonly #idleTimeoutMs: number;

  constructor(options: HttpSourceOptions) {
    const { config, clock, lookup, log = silentLogger, now = Date.now } = options;
    this.#options = options;
    this.#log = log;
    this.#now = now;
    this.#env = options.env ?? machineFacts().env;
    this.#resolver = new Resolver({ clock, ...(lookup === undefined ? {} : { lookup }) }, config);
    this.#fetch = new FetchTransport(config);
    this.#node = new NodeTransport(config);
    this.#connectTimeoutMs = config.connectTimeoutMs ?? CONNECT_TIMEOUT_MS;
    this.#idleTimeoutMs = config.idleTimeoutMs ?? IDLE_TIMEOUT_MS;
  }

  async open(request: SourceRequest, { signal }: { signal: AbortSignal }): Promise<SourceBody> {
    const { range } = request;
    if (
      range !== null && !(range.offset >= 0 && range.length > 0 && Number.isSafeInteger(range.offset + range.length))
    ) {
      throw new RangeError(`Cannot read ${range.length} B at ${range.offset}`);
    }
    const hop = firstHop(request.url, request.headers);
    return await this.#retry(
      hop,
      { order: { range }, read: (hop, exchange) => this.#body(hop, request, exchange) },
      signal,
    );
  }

  /** Lists the folder behind a URL; the code for it is loaded only then. */
  async list(request: ListRequest, { signal }: { signal: AbortSignal }): Promise<Listing> {
    const { listHttpFolder, readFolderAnswer } = await import("./listing/http_folder.ts");
    return await listHttpFolder(async ({ url, headers, method, body }) => {
      const order = { range: null, method, ...(body === undefined ? {} : { body }) };
      const read: Reader<FolderAnswer> = ({ url }, exchange) =>
        readFolderAnswer({ url, ...exchange.answer }, (facts) => this.#bodyOf(url, exchange, facts));
      return await this.#retry(firstHop(url, headers), { order, read }, signal);
    }, request);
  }

  /** Asks until an answer can be read, or the retries are used up. */
  async #retry<T>(hop: Hop, wish: { order: Order; read: Reader<T> }, signal: AbortSignal): Promise<T> {
    const { clock, random, config } = this.#options;
    for (let attempt = 0;; attempt++) {
      signal.throwIfAborted();
      const outcome = await this.#try(hop, wish, signal);
      if ("result" in outcome) return outcome.result;
      const { failure, afterMs } = outcome;
      if (attempt >= (config.retries ?? RETRIES)) throw failure;
      if (afterMs !== null && afterMs > RETRY_AFTER_MAX_MS) {
        const text = `${failure.message}, and asks to wait ${Math.ceil(afterMs / 1000)} s`;
        throw new LacewingError(failure.code, text, { cause: failure });
      }
      const waitMs = afterMs ?? backoffMs(attempt, random);
      this.#log.debug("the origin is asked again", {
        error: failure,
        attempt: attempt + 1,
        wait_ms: Math.round(waitMs),
      });
      await clock.sleep(waitMs, signal);
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#fetch.close();
    this.#node.close();
    return Promise.resolve();
  }

  /** One try through all redirects. Throws what another try would not change. */
  async #try<T>(
    first: Hop,
    { order, read }: { order: Order; read: Reader<T> },
    signal: AbortSignal,
  ): Promise<Outcome<T>> {
    let hop = first;
    for (;;) {
      let exchange: Exchange;
      try {
        exchange = await this.#ask(hop, order, signal);
      } catch (error) {
        if (error instanceof LacewingError && error.code === "network") return { failure: error, afterMs: null };
        throw error;
      }
      const { status, headers } = exchange.answer;
      if (isRedirect(status)) {
        await this.#discard(exchange, hop);
        hop = nextHop(hop, headers.get("location"));
        continue;
      }
      try {
        return { result: await read(hop, exchange) };
      } catch (error) {
        await this.#discard(exchange, hop);
        // A page is read here to its end: its connection may break.
        if (!(error instanceof LacewingError) || !(isPassing(status) || error.code === "network")) throw error;
        return { failure: error, afterMs: retryAfterMs(headers.get("retry-after"), this.#now()) };
      }
    }
  }

  #body(hop: Hop, request: SourceRequest, { answer, abort, unlink }: Exchange): SourceBody {
    const { range, expect } = request;
    const question = { url: hop.url, range, ...(expect === undefined ? {} : { expect }) };
    const facts = readAnswer(question, answer.status, answer.headers);
    const isEmptied = answer.status === 416;
    return this.#bodyOf(hop.url, { answer: isEmptied ? withoutBody(answer) : answer, abort, unlink }, facts);
  }

  #bodyOf(url: URL, { answer, abort, unlink }: Exchange, facts: AnswerFacts): SourceBody {
    return new HttpBody(facts, answer, {
      url,
      clock: this.#options.clock,
      idleTimeoutMs: this.#idleTimeoutMs,
      abort,
      onEnd: unlink,
    });
  }

  /** Sends one request by the first of its routes that leads anywhere. */
  async #ask(hop: Hop, order: Order, signal: AbortSignal): Promise<Exchange> {
    const routes = await this.#routes(hop.url, signal);
    for (const [index, route] of routes.entries()) {
      try {
        return await this.#send(hop, route, { ...order, signal });
      } catch (error) {
        const mayPass = error instanceof LacewingError && (error.code === "network" || error.code === "timeout");
        if (!mayPass || index === routes.length - 1) throw error;
      }
    }
    throw new LacewingError("network", `Cannot reach ${hostAndPort(hop.url)}: it has no address`);
  }

  async #routes(url: URL, signal: AbortSignal): Promise<Route[]> {
    const { insecure, allowPrivateNetworks } = this.#options.config;
    const isTls = url.protocol === "https:";
    const proxy = proxyFor(url, this.#env);
    if (proxy !== null) {
      this.#resolver.judgeLiteral(url);
      if (!insecure || !isTls) return [{ transport: this.#fetch, address: null, isDirect: false }];
      throw new LacewingError(
        "config_invalid",
        `Cannot read ${shownUrl(url)} through a proxy without verifying its certificate: ` +
          "name its authority in download.source.caCerts, or its host in NO_PROXY",
      );
    }
    const addresses = await this.#resolver.resolve(url, signal);
    if (isTls && !insecure && allowPrivateNetworks) return [{ transport: this.#fetch, address: null, isDirect: true }];
    // NO_PROXY excepts a name: fetch, given an address in its place, would take the proxy after all.
    const transport = isTls || proxyFor(url, withoutExceptions(this.#env)) !== null ? this.#node : this.#fetch;
    return addresses.map((address) => ({ transport, address, isDirect: true }));
  }

  async #send(
    hop: Hop,
    route: Route,
    { range, signal, ...order }: Order & { signal: AbortSignal },
  ): Promise<Exchange> {
    const abort = new AbortController();
    const onAbort = () => abort.abort(signal.reason);
    const unlink = () => signal.removeEventListener("abort", onAbort);
    signal.addEventListener("abort", onAbort, { once: true });
    const headers = requestHeaders(hop, { range, userAgent: `lacewing/${VERSION}` });
    const { address, transport } = route;
    const sending = transport.send({ url: hop.url, headers, address, signal: abort.signal, ...order });
    try {
      return { answer: await this.#withinTime(sending, { url: hop.url, route, abort }), abort, unlink };
    } catch (error) {
      unlink();
      throw error;
    }
  }

  /** Aborts what takes longer than the timeouts, and waits for it. */
  async #withinTime<T>(
    work: Promise<T>,
    { url, route, abort }: { url: URL; route: Route | null; abort: AbortController },
  ): Promise<T> {
    const done = new AbortController();
    const watch = this.#watch(url, { route, abort, done: done.signal }).catch(() => {});
    try {
      return await work;
    } finally {
      done.abort();
      await watch;
    }
  }

  async #watch(
    url: URL,
    { route, abort, done }: { route: Route | null; abort: AbortController; done: AbortSignal },
  ): Promise<void> {
    const { clock } = this.#options;
    const connectMs = Math.min(this.#connectTimeoutMs, this.#idleTimeoutMs);
    await clock.sleep(connectMs, done);
    // fetch does not tell when it is connected: a host that is only slow to answer is told apart by connecting again.
    const to = { hostname: route?.address ?? bareHost(url), port: portOf(url) };
    if (
      route?.isDirect && !await takesConnections(to, { clock, withinMs: Math.min(connectMs, PROBE_TIMEOUT_MS), done })
    ) {
      done.throwIfAborted();
      const text = `Cannot reach ${hostAndPort(url)}: no connection within ${connectMs / 1000} s`;
      return abort.abort(new LacewingError("timeout", text));
    }
    await clock.sleep(this.#idleTimeoutMs - connectMs, done);
    const text = `Cannot read ${shownUrl(url)}: no answer within ${this.#idleTimeoutMs / 1000} s`;
    abort.abort(new LacewingError("timeout", text));
  }

  async #discard({ answer, abort, unlink }: Exchange, { url }: Hop): Promise<void> {
    await this.#withinTime(discard(answer), { url, route: null, abort });
    unlink();
  }
}

/** The same answer with no bytes: a 416 that stands for an empty content has the text of an error as its body. */
function withoutBody(answer: TransportAnswer): TransportAnswer {
  return {
    status: answer.status,
    headers: new Headers(),
    read: () => Promise.resolve(null),
    cancel: () => answer.cancel(),
  };
}

async function takesConnections(
  to: { hostname: string; port: number },
  { clock, withinMs, done }: { clock: Clock; withinMs: number; done: AbortSignal },
): Promise<boolean> {
  const limit = new AbortController();
  const timer = clock.sleep(withinMs, AbortSignal.any([done, limit.signal])).catch(() => {}).then(() => limit.abort());
  try {
    (await Deno.connect({ ...to, signal: limit.signal })).close();
    return true;
  } catch {
    return false;
  } finally {
    limit.abort();
    await timer;
  }
}
