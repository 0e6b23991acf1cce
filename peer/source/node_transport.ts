/**
 * The transport on `node:http` and `node:https`: connects to the given address
 * while TLS checks the certificate for the URL's name, can leave a certificate
 * unchecked where the configuration says `insecure`, and never uses the
 * environment's proxies. Slower than fetch.
 */
import * as http from "node:http";
import * as https from "node:https";
import { rootCertificates } from "node:tls";
import { LacewingError } from "../core/errors.ts";
import { portOf } from "./http_request.ts";
import { bareHost } from "./proxy_env.ts";
import { reachError, type Transport, type TransportAnswer, type TransportRequest } from "./transport.ts";

export class NodeTransport implements Transport {
  readonly #plainAgent = new http.Agent({ keepAlive: true });
  readonly #tlsAgent = new https.Agent({ keepAlive: true });
  readonly #trust: { ca?: string[]; rejectUnauthorized: boolean };

  constructor({ caCerts, insecure }: { caCerts: readonly string[]; insecure: boolean }) {
    const ca = caCerts.length === 0 ? {} : { ca: [...rootCertificates, ...caCerts] };
    this.#trust = { ...ca, rejectUnauthorized: !insecure };
  }

  send({ url, headers, address, signal, method = "GET", body }: TransportRequest): Promise<TransportAnswer> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const host = bareHost(url);
      const options = {
        host: address ?? host,
        port: portOf(url),
        path: url.pathname + url.search,
        method,
        headers: { host: url.host, ...grouped(headers) },
      };
      const request = url.protocol === "http:"
        ? http.request({ ...options, agent: this.#plainAgent })
        : https.request({ ...options, agent: this.#tlsAgent, ...this.#trust, servername: host });
      const onAbort = () => request.destroy();
      signal.addEventListener("abort", onAbort, { once: true });
      request.once("response", (message) => resolve(new NodeAnswer(message, { url, signal, onAbort })));
      request.on("error", (cause) => {
        signal.removeEventListener("abort", onAbort);
        reject(signal.aborted ? signal.reason : reachError(url, cause));
      });
      request.once("close", () => reject(signal.aborted ? signal.reason : reachError(url, "the connection closed")));
      request.end(body);
    });
  }

  close(): void {
    this.#plainAgent.destroy();
    this.#tlsAgent.destroy();
  }
}

class NodeAnswer implements TransportAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly #message: http.IncomingMessage;
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #context: { url: URL; signal: AbortSignal; onAbort: () => void };
  #ended = false;

  constructor(message: http.IncomingMessage, context: { url: URL; signal: AbortSignal; onAbort: () => void }) {
    this.status = message.statusCode ?? 0;
    this.headers = new Headers();
    for (let at = 0; at + 1 < message.rawHeaders.length; at += 2) {
      this.headers.append(message.rawHeaders[at] ?? "", message.rawHeaders[at + 1] ?? "");
    }
    this.#message = message;
    this.#chunks = message[Symbol.asyncIterator]();
    this.#context = context;
  }

  async read(): Promise<Uint8Array | null> {
    if (this.#ended) return null;
    const { url, signal } = this.#context;
    try {
      const { value, done } = await this.#chunks.next();
      if (!done) return value;
      // A body that is cut short ends like a whole one here, but for this flag.
      if (!this.#message.complete) throw new Error("the body ended early");
    } catch (cause) {
      this.#end();
      signal.throwIfAborted();
      throw new LacewingError("network", `Cannot read from ${url.host}: the connection broke`, { cause });
    }
    this.#end();
    return null;
  }

  cancel(): Promise<void> {
    if (!this.#ended) this.#message.destroy();
    this.#end();
    return Promise.resolve();
  }

  #end(): void {
    this.#ended = true;
    this.#context.signal.removeEventListener("abort", this.#context.onAbort);
  }
}

/** Pairs as `node:http` takes them: a name once, with all its values. */
function grouped(headers: TransportRequest["headers"]): Record<string, string | string[]> {
  const result: Record<string, string | string[]> = {};
  for (const [name, value] of headers) {
    const before = result[name];
    result[name] = before === undefined ? value : [before, value].flat();
  }
  return result;
}
