/**
 * The forward proxy: requests in absolute form go by the first rule that
 * matches, through the swarm or straight on; CONNECT opens a tunnel whose
 * bytes nobody looks at.
 */
import { digestInUrl, formatDigest } from "../core/digest.ts";
import { LacewingError } from "../core/errors.ts";
import { writeAll } from "../core/wire/json_lines.ts";
import { closeQuietly } from "../transfer/connection.ts";
import type { ClientExchange } from "./client_exchange.ts";
import type { HttpReader } from "./http_reader.ts";
import type { Link, OriginLinks } from "./origin_link.ts";
import type { PassThrough } from "./pass_through.ts";
import { refusal } from "./refusals.ts";
import { override } from "./registry_target.ts";
import { isListed, mayTunnel, type ProxyRule, tunnelTarget, wayOf, type WhiteListEntry } from "./rules.ts";
import type { Content, SharedContent } from "./shared_content.ts";

export interface ForwardProxyDeps {
  readonly shared: SharedContent;
  readonly pass: PassThrough;
  readonly links: OriginLinks;
  readonly isOwn: (url: URL) => boolean;
}

export interface ForwardProxyConfig {
  readonly rules: readonly ProxyRule[];
  readonly whiteList: readonly WhiteListEntry[];
  readonly defaultFilter: string;
  readonly defaultTag: string;
}

export class ForwardProxy {
  constructor(private readonly deps: ForwardProxyDeps, private readonly config: ForwardProxyConfig) {}

  /** A request whose target is a whole URL. */
  async serve(exchange: ClientExchange): Promise<void> {
    const { method, target } = exchange.head;
    const asked = URL.parse(target);
    if (asked === null || !/^https?:$/.test(asked.protocol)) {
      throw new LacewingError("bad_request", "Cannot pass the request on: want an http or https URL");
    }
    [asked.username, asked.password, asked.hash] = ["", "", ""];
    const { url, isShared } = wayOf(asked, { rules: this.config.rules, method });
    if (!isListed(asked, this.config.whiteList)) {
      return await refuse(exchange, 403, "DENIED", `${asked.host} is not in proxy.whiteList`);
    }
    if (this.deps.isOwn(url)) return await refuse(exchange, 508, "UNAVAILABLE", "The URL leads to this proxy itself");
    if (isShared && exchange.body === null) return await this.deps.shared.serve(exchange, this.#content(exchange, url));
    await this.deps.pass.serve(exchange, { url, scope: null, extra: [], isIdentity: false, digest: null });
  }

  /** Opens a tunnel and carries bytes both ways until both ends are through. */
  async tunnel(exchange: ClientExchange, client: Link, reader: HttpReader): Promise<void> {
    exchange.close();
    const place = tunnelTarget(exchange.head.target);
    if (place === null) throw new LacewingError("bad_request", "Cannot open a tunnel: want HOST:PORT");
    if (!mayTunnel(place, this.config.whiteList)) {
      const text = `No tunnel to ${place.host}:${place.port}: want port 443, or an entry of proxy.whiteList`;
      return await refuse(exchange, 403, "DENIED", text);
    }
    const url = new URL(`http://${exchange.head.target}`);
    if (this.deps.isOwn(url)) {
      return await refuse(exchange, 508, "UNAVAILABLE", "The tunnel leads to this proxy itself");
    }
    const origin = await this.deps.links.tunnel(url, exchange.signal);
    const onAbort = () => closeQuietly(origin);
    exchange.signal.addEventListener("abort", onAbort, { once: true });
    try {
      exchange.begin(200, []);
      await exchange.end();
      await Promise.all([carry(() => reader.readRaw(), origin), carry(readerOf(origin), client)]);
    } catch (error) {
      // One end broke: the other has nobody to talk to.
      if (error instanceof LacewingError) throw error;
    } finally {
      exchange.signal.removeEventListener("abort", onAbort);
      closeQuietly(origin);
      closeQuietly(client);
    }
  }

  #content({ head }: ClientExchange, url: URL): Content {
    const digest = digestInUrl(url.href);
    const repository = /^\/v2\/(.+)\/blobs\/[^/]+$/.exec(url.pathname)?.[1];
    return {
      url,
      filter: override(head.fields, "filter") ?? this.config.defaultFilter,
      tag: override(head.fields, "tag") ?? this.config.defaultTag,
      // The whole URL: a signature in its query is a credential, whatever the filter makes of it.
      scope: repository === undefined ? url.href : `${url.origin} ${repository}`,
      digest: digest === null ? null : formatDigest(digest),
      fields: [],
      afterRefusal: null,
    };
  }
}

const TUNNEL_BUFFER_LENGTH = 64 * 1024;

function readerOf(link: Link): () => Promise<Uint8Array | null> {
  const buffer = new Uint8Array(TUNNEL_BUFFER_LENGTH);
  return async () => {
    const read = await link.read(buffer);
    return read === null ? null : buffer.subarray(0, read);
  };
}

async function carry(read: () => Promise<Uint8Array | null>, to: Link): Promise<void> {
  for (let bytes = await read(); bytes !== null; bytes = await read()) await writeAll(to, bytes);
  await to.closeWrite().catch(() => {});
}

async function refuse(exchange: ClientExchange, status: number, code: string, message: string): Promise<void> {
  const { fields, body } = refusal(status, code, message);
  await exchange.send(status, fields, body);
}
