/**
 * Opens connections for the proxy: to an origin itself or through a proxy of
 * the environment, plain or under TLS. Every address of a name is judged
 * before it is connected to (no link-local, no metadata, no private network
 * where those are not allowed), and the judged address is the one used.
 */
import { Buffer } from "node:buffer";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { systemClock } from "../core/clock.ts";
import { LacewingError } from "../core/errors.ts";
import type { ByteReader, ByteWriter } from "../core/wire/json_lines.ts";
import { writeAll } from "../core/wire/json_lines.ts";
import { hostAndPort, portOf } from "../source/http_request.ts";
import { bareHost, type Environment, proxyFor } from "../source/proxy_env.ts";
import { Resolver } from "../source/resolver.ts";
import { reachError } from "../source/transport.ts";
import { closeQuietly } from "../transfer/connection.ts";
import { type Field, formatHead, parseAnswerHead } from "./http_message.ts";
import { HttpReader } from "./http_reader.ts";

/** A connection as bytes. */
export interface Link extends ByteReader, ByteWriter {
  close(): void;
  /** Ends the sending direction only. */
  closeWrite(): Promise<void>;
}

export interface LinkConfig {
  /** PEM texts of authorities trusted besides the usual ones. */
  readonly caCerts: readonly string[];
  /** `HOST` or `HOST:PORT` of origins whose certificates are not verified. */
  readonly isInsecure: (url: URL) => boolean;
  readonly allowPrivateNetworks: boolean;
  /** Whether a connection to there would come back to this proxy. */
  readonly isOwnAddress?: (address: string, port: number) => boolean;
  readonly env: Environment;
}

/** How a connection is used: a request goes out in absolute form through a proxy of the environment. */
export interface Opened {
  readonly link: Link;
  readonly isProxied: boolean;
  /** Credentials for that proxy. */
  readonly proxyFields: readonly Field[];
}

export const CONNECT_TIMEOUT_MS = 10_000;

export class OriginLinks {
  readonly #resolver: Resolver;

  constructor(private readonly config: LinkConfig) {
    this.#resolver = new Resolver({ clock: systemClock }, config);
  }

  /** @throws {LacewingError} `network`, `timeout`, `tls`, `policy`; `signal.reason` when aborted */
  async open(url: URL, signal: AbortSignal): Promise<Opened> {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_TIMEOUT_MS)]);
    try {
      return await this.#open(url, limit);
    } catch (cause) {
      signal.throwIfAborted();
      if (limit.aborted) {
        const text = `Cannot reach ${hostAndPort(url)}: no connection within ${CONNECT_TIMEOUT_MS / 1000} s`;
        throw new LacewingError("timeout", text, { cause });
      }
      throw cause instanceof LacewingError ? cause : reachError(url, cause);
    }
  }

  /** A plain connection to a host, for a tunnel. */
  async tunnel(url: URL, signal: AbortSignal): Promise<Link> {
    const target = new URL(url);
    const proxy = proxyFor(target, this.config.env);
    if (proxy !== null) return await this.#throughProxy(target, new URL(proxy), signal);
    return await this.#direct(target, signal);
  }

  async #open(url: URL, signal: AbortSignal): Promise<Opened> {
    const isTls = url.protocol === "https:";
    const proxyText = proxyFor(url, this.config.env);
    const proxy = proxyText === null ? null : URL.parse(proxyText.includes("://") ? proxyText : `http://${proxyText}`);
    if (proxy !== null && !isTls) {
      this.#resolver.judgeLiteral(url);
      return { link: await this.#dial(proxy, signal), isProxied: true, proxyFields: credentialsOf(proxy) };
    }
    if (isTls && this.config.isInsecure(url)) return { link: await this.#unverified(url, proxy, signal), ...UNPROXIED };
    const conn = proxy === null ? await this.#direct(url, signal) : await this.#throughProxy(url, proxy, signal);
    return { link: isTls ? await this.#secure(conn, url, signal) : conn, ...UNPROXIED };
  }

  async #direct(url: URL, signal: AbortSignal): Promise<Deno.TcpConn> {
    const port = portOf(url);
    return await this.#first(
      url,
      async (hostname) => prepared(await Deno.connect({ hostname, port, signal })),
      signal,
    );
  }

  async #unverified(url: URL, proxy: URL | null, signal: AbortSignal): Promise<Link> {
    if (proxy !== null) {
      throw new LacewingError(
        "config_invalid",
        `Cannot reach ${hostAndPort(url)} through a proxy without verifying its certificate: ` +
          "name its authority in proxy.registryMirror.certs, or its host in NO_PROXY",
      );
    }
    const port = portOf(url);
    return await this.#first(
      url,
      (hostname) => openUnverified({ hostname, port, servername: bareHost(url) }, signal),
      signal,
    );
  }

  /** The connection to the first of the name's addresses that takes one. */
  async #first<T>(url: URL, connect: (address: string) => Promise<T>, signal: AbortSignal): Promise<T> {
    const addresses = await this.#resolver.resolve(url, signal);
    let failure: unknown;
    for (const address of addresses) {
      if (this.config.isOwnAddress?.(address, portOf(url)) === true) {
        throw new LacewingError("policy", `Cannot ask ${hostAndPort(url)}: it leads to this proxy itself`);
      }
      try {
        return await connect(address);
      } catch (error) {
        signal.throwIfAborted();
        failure = error;
      }
    }
    throw reachError(url, failure);
  }

  async #dial(proxy: URL, signal: AbortSignal): Promise<Deno.TcpConn> {
    try {
      return prepared(await Deno.connect({ hostname: bareHost(proxy), port: portOf(proxy), signal }));
    } catch (cause) {
      signal.throwIfAborted();
      throw reachError(proxy, cause);
    }
  }

  async #throughProxy(url: URL, proxy: URL, signal: AbortSignal): Promise<Deno.TcpConn> {
    this.#resolver.judgeLiteral(url);
    const conn = await this.#dial(proxy, signal);
    const onAbort = () => closeQuietly(conn);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      const place = hostAndPort(url);
      await writeAll(conn, formatHead(`CONNECT ${place} HTTP/1.1`, [["Host", place], ...credentialsOf(proxy)]));
      const text = await new HttpReader(conn).readHead();
      const status = text === null ? 0 : parseAnswerHead(text).status;
      if (status < 200 || status > 299) {
        throw new LacewingError("network", `Cannot reach ${place}: proxy ${proxy.host} answers ${status}`);
      }
      return conn;
    } catch (error) {
      closeQuietly(conn);
      throw error;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  async #secure(conn: Deno.TcpConn, url: URL, signal: AbortSignal): Promise<Link> {
    const onAbort = () => closeQuietly(conn);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      const secure = await Deno.startTls(conn, { hostname: bareHost(url), caCerts: [...this.config.caCerts] });
      try {
        await secure.handshake();
        return secure;
      } catch (error) {
        closeQuietly(secure);
        throw error;
      }
    } catch (cause) {
      signal.throwIfAborted();
      const reason = cause instanceof Error ? cause.message : String(cause);
      // The latter: an authority of that name is known, with another key.
      const hint = /UnknownIssuer|BadSignature/.test(reason) ? "; name its authority in download.source.caCerts" : "";
      throw new LacewingError("tls", `Cannot trust ${hostAndPort(url)}: ${reason.slice(0, 300)}${hint}`, { cause });
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }
}

const UNPROXIED = { isProxied: false, proxyFields: [] } as const;

function prepared(conn: Deno.TcpConn): Deno.TcpConn {
  conn.setNoDelay(true);
  conn.setKeepAlive(true);
  return conn;
}

function credentialsOf(proxy: URL): Field[] {
  if (proxy.username === "" && proxy.password === "") return [];
  const text = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  return [["Proxy-Authorization", `Basic ${Buffer.from(text).toString("base64")}`]];
}

/** Deno's own TLS always verifies: `insecure: true` needs the one of `node:tls`. */
function openUnverified(
  { hostname, port, servername }: { hostname: string; port: number; servername: string },
  signal: AbortSignal,
): Promise<Link> {
  return new Promise((resolve, reject) => {
    const name = /^[\d.]+$|:/.test(servername) ? {} : { servername };
    const socket = connectTls({ host: hostname, port, ...name, rejectUnauthorized: false });
    const onAbort = () => socket.destroy();
    signal.addEventListener("abort", onAbort, { once: true });
    const settle = () => signal.removeEventListener("abort", onAbort);
    socket.once("secureConnect", () => {
      settle();
      resolve(linkOf(socket));
    });
    socket.on("error", (error) => {
      settle();
      reject(error);
    });
    socket.once("close", () => {
      settle();
      reject(signal.aborted ? signal.reason : new Error("the connection closed"));
    });
  });
}

function linkOf(socket: TLSSocket): Link {
  const chunks: AsyncIterator<Uint8Array> = socket[Symbol.asyncIterator]();
  let rest: Uint8Array = new Uint8Array();
  return {
    read: async (buffer) => {
      if (rest.length === 0) {
        const { value, done } = await chunks.next();
        if (done) return null;
        rest = value;
      }
      const length = Math.min(rest.length, buffer.length);
      buffer.set(rest.subarray(0, length));
      rest = rest.subarray(length);
      return length;
    },
    write: (bytes) =>
      new Promise((resolve, reject) => {
        // node keeps the buffer until it is sent: the caller may reuse it when this resolves.
        socket.write(bytes, (error) => error ? reject(error) : resolve(bytes.length));
      }),
    close: () => socket.destroy(),
    closeWrite: () => new Promise((resolve) => socket.end(resolve)),
  };
}
