/**
 * Puts the proxy together: the listener, the ways to origins, who may have
 * what, the mirror and the forward proxy.
 */
import type { Clock } from "../core/clock.ts";
import { isLoopback } from "../core/address.ts";
import type { Logger } from "../core/log.ts";
import { machineFacts } from "../core/machine.ts";
import { bareHost } from "../source/proxy_env.ts";
import { portOf } from "../source/http_request.ts";
import type { Source } from "../source/source.ts";
import type { StreamingStarter } from "../task/task.ts";
import { formatHostPort } from "../transfer/connection.ts";
import { Access } from "./access.ts";
import { anonymousHeaders, strangersHeaders } from "./anonymous_token.ts";
import { ContentTypes } from "./content_types.ts";
import { ForwardProxy } from "./forward_proxy.ts";
import { OriginClient } from "./origin_client.ts";
import { OriginLinks } from "./origin_link.ts";
import { PassThrough } from "./pass_through.ts";
import { listenForProxy, ProxyServer } from "./proxy_server.ts";
import { openPublicRecord } from "./public_record.ts";
import { RegistryMirror, type RegistryMirrorConfig } from "./registry_mirror.ts";
import { SharedContent } from "./shared_content.ts";
import { Strangers } from "./strangers.ts";

export interface ProxyDeps {
  readonly tasks: StreamingStarter;
  readonly source: Source;
  readonly clock: Clock;
  readonly log: Logger;
  /** File that keeps what is public over restarts. */
  readonly publicsPath: string;
}

export interface ProxyConfig extends RegistryMirrorConfig {
  readonly listenIP: string;
  /** 0 asks for any free port. */
  readonly port: number;
  readonly authorize: boolean;
  readonly basicAuth: { readonly username: string; readonly password: string };
  /** PEM texts of authorities trusted besides the usual ones. */
  readonly caCerts: readonly string[];
  readonly isInsecure: (url: URL) => boolean;
  readonly allowPrivateNetworks: boolean;
  /** Longest wait for the head of an answer that passes through, and for each next byte. Default 60 s. */
  readonly timeoutMs?: number;
}

export interface Proxy extends AsyncDisposable {
  /** `HOST:PORT` */
  readonly address: string;
  /** Requests that are being answered. */
  readonly activeCount: number;
}

/** @throws {LacewingError} `network` when the address cannot be listened on */
export function startProxy({ tasks, source, clock, log, publicsPath }: ProxyDeps, config: ProxyConfig): Proxy {
  const listener = listenForProxy(config);
  const { hostname, port } = listener.addr;
  const isOwnAddress = (address: string, at: number) =>
    at === port && (address === hostname || isLoopback(address) || (isAny(hostname) && isOfThisHost(address)));
  const isOwn = (url: URL) => {
    const host = bareHost(url);
    return host === "localhost" ? portOf(url) === port : isOwnAddress(host, portOf(url));
  };
  const links = new OriginLinks({ ...config, isOwnAddress, env: machineFacts().env });
  const { timeoutMs } = config;
  const client = new OriginClient(links, timeoutMs === undefined ? {} : { headMs: timeoutMs, idleMs: timeoutMs });
  const types = new ContentTypes();
  const access = config.authorize
    ? new Access({
      clock,
      publics: openPublicRecord(publicsPath, { log }),
      head: async ({ url, fields }, signal) => {
        using answer = await client.send({
          method: "HEAD",
          url,
          fields: [...fields, ["Accept", "*/*"], ["Accept-Encoding", "identity"]],
          body: null,
        }, signal);
        types.learn(url, answer.head);
        return answer.head.status;
      },
      probe: async ({ url, fields }, signal) => {
        await using _body = await source.open(
          { url: url.href, headers: fields, range: { offset: 0, length: 1 } },
          { signal },
        );
      },
    })
    : null;
  const pass = new PassThrough(client, access);
  const shared = new SharedContent({
    ...{ tasks, source, clock, log, access, pass },
    contentType: (url) => types.of(url),
    strangersHeaders: (read, signal) => anonymousHeaders(client, read, signal),
  });
  const strangers = new Strangers({
    clock,
    strangersHeaders: (read, signal) => strangersHeaders(client, read, signal),
  });
  const mirror = new RegistryMirror({ tasks, shared, pass, access, strangers, log, isOwn }, config);
  const forward = new ForwardProxy({ shared, pass, links, isOwn }, config);
  if (!isLoopback(hostname) && config.basicAuth.username === "") {
    log.warn("the proxy is open to everyone who reaches it: set proxy.basicAuth, or listen on loopback", { hostname });
  }
  const server = new ProxyServer(listener, { mirror, forward, log }, config);
  return {
    address: formatHostPort({ hostname, port }),
    get activeCount() {
      return server.activeCount;
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      client[Symbol.dispose]();
    },
  };
}

/** Whether a listener's address stands for all of the host's. */
function isAny(hostname: string): boolean {
  return hostname === "0.0.0.0" || hostname === "::";
}

function isOfThisHost(address: string): boolean {
  return Deno.networkInterfaces().some((one) => one.address === address);
}
