/**
 * The proxy's port: raw TCP with an HTTP/1.1 of its own, because CONNECT,
 * whole URLs as targets and exact fields are needed. Serves one request after
 * the other of each connection; a client that hangs up ends its work at once.
 *
 * Keeps: bounded connections, heads and waits. An answer that was begun and
 * fails ends the connection, so that it never looks whole.
 */
import { type Clock, systemClock } from "../core/clock.ts";
import { LacewingError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import { closeQuietly, formatHostPort, isConnectionError, messageOf, prepare } from "../transfer/connection.ts";
import { Watchdog } from "../transfer/watchdog.ts";
import { ClientExchange } from "./client_exchange.ts";
import type { ForwardProxy } from "./forward_proxy.ts";
import { parseRequestHead, requestFraming, valueOf } from "./http_message.ts";
import { HttpReader } from "./http_reader.ts";
import type { Link } from "./origin_link.ts";
import { refusal, refusalOf } from "./refusals.ts";
import type { RegistryMirror } from "./registry_mirror.ts";
import { mayUse } from "./rules.ts";

export interface ProxyServerDeps {
  readonly mirror: RegistryMirror;
  readonly forward: ForwardProxy;
  readonly log: Logger;
}

export interface ProxyServerConfig {
  readonly basicAuth: { readonly username: string; readonly password: string };
}

/** Each costs a socket and some 20 KB. */
const CONNECTIONS_MAX = 2048;
const HEAD_TIMEOUT_MS = 30_000;
const IDLE_TIMEOUT_MS = 120_000;
/** A client that unpacks while it downloads may take nothing for a while. */
const WRITE_STALL_MS = 15 * 60_000;
const ACCEPT_PAUSE_MS = 100;
const REALM = 'Basic realm="lacewing", charset="UTF-8"';

export class ProxyServer implements AsyncDisposable {
  readonly #connections = new Set<ProxyConnection>();
  readonly #running = new Set<Promise<void>>();
  readonly #stop = new AbortController();
  readonly #accepting: Promise<void>;

  constructor(
    private readonly listener: Deno.TcpListener,
    private readonly deps: ProxyServerDeps,
    private readonly config: ProxyServerConfig,
  ) {
    this.#accepting = this.#accept();
  }

  /** Requests that are being answered. */
  get activeCount(): number {
    return [...this.#connections].filter((connection) => connection.isBusy).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new LacewingError("unavailable", "The proxy is stopping"));
    closeQuietly(this.listener);
    await this.#accepting;
    for (const connection of this.#connections) connection.close();
    await Promise.all(this.#running);
  }

  async #accept(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        this.#serve(await this.listener.accept());
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        this.deps.log.warn("cannot accept a client's connection", { reason: messageOf(error) });
        await systemClock.sleep(ACCEPT_PAUSE_MS, this.#stop.signal).catch(() => {});
      }
    }
  }

  #serve(conn: Deno.TcpConn): void {
    if (this.#stop.signal.aborted || this.#connections.size >= CONNECTIONS_MAX) return closeQuietly(conn);
    prepare(conn);
    const connection = new ProxyConnection(conn, this.deps, this.config, this.#stop.signal);
    this.#connections.add(connection);
    const running = connection.run().finally(() => {
      this.#connections.delete(connection);
      this.#running.delete(running);
    });
    this.#running.add(running);
  }
}

/** Begins to listen. @throws {LacewingError} `network` */
export function listenForProxy({ listenIP, port }: { listenIP: string; port: number }): Deno.TcpListener {
  try {
    return Deno.listen({ hostname: listenIP, port });
  } catch (cause) {
    const place = formatHostPort({ hostname: listenIP, port });
    throw new LacewingError(
      "network",
      `Cannot serve the proxy at ${place}: ${messageOf(cause)}; set proxy.tcpListen.port or proxy.listenIP`,
      { cause },
    );
  }
}

class ProxyConnection {
  readonly #reader: HttpReader;
  readonly #watchdog: Watchdog;
  readonly #gone = new AbortController();
  readonly #link: Link;
  #isBusy = false;

  constructor(
    private readonly conn: Deno.TcpConn,
    private readonly deps: ProxyServerDeps,
    private readonly config: ProxyServerConfig,
    private readonly stop: AbortSignal,
    clock: Clock = systemClock,
  ) {
    this.#watchdog = new Watchdog(clock, () => this.close());
    this.#reader = new HttpReader(conn);
    this.#link = {
      read: (buffer) => conn.read(buffer),
      write: (bytes) => this.#write(bytes),
      close: () => this.close(),
      closeWrite: () => conn.closeWrite(),
    };
  }

  get isBusy(): boolean {
    return this.#isBusy;
  }

  close(): void {
    if (!this.#gone.signal.aborted) this.#gone.abort(new DOMException("The client went away", "AbortError"));
    closeQuietly(this.conn);
  }

  /** Serves until one of both ends closes; never rejects. */
  async run(): Promise<void> {
    const onStop = () => this.close();
    this.stop.addEventListener("abort", onStop, { once: true });
    try {
      this.#watchdog.arm(HEAD_TIMEOUT_MS);
      while (await this.#next()) this.#watchdog.arm(IDLE_TIMEOUT_MS);
    } catch (error) {
      await this.#refuse(error).catch(() => {});
    } finally {
      this.stop.removeEventListener("abort", onStop);
      this.#watchdog[Symbol.dispose]();
      this.close();
    }
  }

  /** Answers one request. @returns whether the connection goes on */
  async #next(): Promise<boolean> {
    const text = await this.#reader.readHead();
    this.#watchdog.disarm();
    if (text === null) return false;
    this.#isBusy = true;
    try {
      const head = parseRequestHead(text);
      const framing = requestFraming(head);
      const hasBody = framing.kind === "chunked" || (framing.kind === "length" && framing.length > 0);
      const body = hasBody ? { framing, reader: this.#reader.body(framing) } : null;
      const exchange = new ClientExchange(head, body, this.#link, this.#gone.signal);
      if (body === null && head.method !== "CONNECT") this.#reader.watch(() => this.close());
      await this.#serve(exchange);
      if (!exchange.mayGoOn) return false;
      // A body that nobody read stands before the next head.
      return body === null || (await body.reader.read()) === null;
    } finally {
      this.#isBusy = false;
    }
  }

  async #serve(exchange: ClientExchange): Promise<void> {
    const { method, target, fields } = exchange.head;
    try {
      if (!mayUse(valueOf(fields, "proxy-authorization"), this.config.basicAuth)) {
        exchange.close();
        const { status, fields, body } = refusal(407, "UNAUTHORIZED", "Name and password are wanted", [
          ["Proxy-Authenticate", REALM],
        ]);
        return await exchange.send(status, fields, body);
      }
      if (method === "CONNECT") return await this.deps.forward.tunnel(exchange, this.#link, this.#reader);
      if (/^\/v2(?:[/?]|$)/.test(target)) return await this.deps.mirror.serve(exchange);
      if (!target.startsWith("/")) return await this.deps.forward.serve(exchange);
      await exchange.send(404, [["Content-Type", "text/plain"]], "Only /v2/ is served here\n");
    } catch (error) {
      if (this.#gone.signal.aborted || isConnectionError(error)) return exchange.close();
      const level = error instanceof LacewingError ? "info" : "error";
      this.deps.log[level]("a request failed", { method, target, error, begun: exchange.isBegun });
      exchange.close();
      if (exchange.isBegun) return;
      const { status, fields, body } = refusalOf(error);
      await exchange.send(status, fields, body);
    }
  }

  /** Says why a message cannot be read, and ends the connection: nobody knows where the next one begins. */
  async #refuse(error: unknown): Promise<void> {
    if (this.#gone.signal.aborted || isConnectionError(error)) return;
    if (!(error instanceof LacewingError)) {
      this.deps.log.error("a connection failed", { error });
      return;
    }
    this.deps.log.debug("refused a request", { reason: error.message });
    const status = /head is longer/.test(error.message) ? 431 : 400;
    const text = `${error.message}\n`;
    const head = `HTTP/1.1 ${status} ${status === 431 ? "Request Header Fields Too Large" : "Bad Request"}\r\n`;
    const fields = `Content-Type: text/plain\r\nContent-Length: ${text.length}\r\nConnection: close\r\n\r\n`;
    await this.#link.write(new TextEncoder().encode(head + fields + text));
  }

  async #write(bytes: Uint8Array): Promise<number> {
    this.#watchdog.arm(WRITE_STALL_MS);
    try {
      return await this.conn.write(bytes);
    } finally {
      this.#watchdog.disarm();
    }
  }
}
