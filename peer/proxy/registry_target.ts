/**
 * Decides which registry a request to the mirror is meant for, and what it
 * asks of it. Pure. The upstream comes from a header, else from `ns`, else
 * from a host as the first path element, else it is the configured one.
 */
import { LacewingError } from "../core/errors.ts";
import { digestInUrl, formatDigest } from "../core/digest.ts";
import { isLoopback } from "../core/address.ts";
import { bareHost } from "../source/proxy_env.ts";
import { type Field, valueOf } from "./http_message.ts";

export interface MirrorConfig {
  /** Base URL of the registry for requests that name none. */
  readonly url: string;
  /** Whether requests may name another registry. */
  readonly dynamic: boolean;
  /** Base URLs of registries that are not `https://HOST`. */
  readonly registries: readonly { readonly host: string; readonly url: string }[];
}

export interface RegistryTarget {
  /** What is asked of the registry itself, with the query as it came. */
  readonly url: URL;
  readonly kind: "ping" | "blob" | "manifest" | "other";
  /** Name of the repository as the URL spells it; empty for a ping and for what names none. */
  readonly repository: string;
  /** `algorithm:hex` that the URL promises, or null (a tag, a list). */
  readonly digest: string | null;
  /** Value of `ns` where it chose the registry. */
  readonly namespace: string | null;
  /** Whether the request named the registry, rather than the configuration. */
  readonly isNamed: boolean;
  /** Whether its path did: such a client asks `/v2/` of the configured registry, and signs in there. */
  readonly isNamedByPath: boolean;
}

/** Request headers that choose or change something here, and never travel on. */
export const OVERRIDES = ["registry", "filter", "tag"].flatMap((name) => [`x-dragonfly-${name}`, `x-lacewing-${name}`]);
const HOST = /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;
/** A colon cannot stand in the path of an image's reference; `HOST__PORT` can, and no host ends so. */
const PATH_PORT = /__(\d{1,5})$/;
const DOCKER_HUB = new Set(["docker.io", "registry-1.docker.io", "index.docker.io"]);

/**
 * @param target path and query as they came, beginning with `/v2`
 * @throws {LacewingError} `bad_request` for a registry that cannot be read
 */
export function registryTarget(target: string, fields: readonly Field[], config: MirrorConfig): RegistryTarget {
  const { path, query } = split(target);
  const named = config.dynamic ? namedRegistry({ path, query }, fields, config) : null;
  const base = named?.base ?? new URL(config.url);
  const ownPath = named?.path ?? path;
  const url = new URL(base.origin);
  // Set after parsing, so that "//" and ".." of the client cannot change the host.
  url.pathname = base.pathname.replace(/\/$/, "") + ownPath;
  url.search = query;
  // From the path as it will be sent: what stands for a repository must be that repository to its registry.
  const { kind, repository } = partsOf(url.pathname.slice(base.pathname.replace(/\/$/, "").length));
  const digest = kind === "blob" || kind === "manifest" ? digestInUrl(url.href) : null;
  return {
    url,
    kind,
    repository,
    digest: digest === null ? null : formatDigest(digest),
    namespace: named?.namespace ?? null,
    isNamed: named !== null,
    isNamedByPath: named?.isByPath === true,
  };
}

/** The last value that a client gave for one of the overrides, or null. @param name `filter`, `tag` or `registry` */
export function override(fields: readonly Field[], name: string): string | null {
  return valueOf(fields, `x-lacewing-${name}`) ?? valueOf(fields, `x-dragonfly-${name}`);
}

/** Base URL of the registry that goes by this host. */
export function registryUrl(host: string, config: MirrorConfig): URL {
  const known = config.registries.find((registry) => registry.host.toLowerCase() === host.toLowerCase());
  if (known !== undefined) return new URL(known.url);
  const own = new URL(config.url);
  if (own.host === host.toLowerCase()) return own;
  if (DOCKER_HUB.has(host.toLowerCase())) {
    // As Docker's own clients: the name of Docker Hub is not the host that serves it.
    return DOCKER_HUB.has(own.hostname) ? own : new URL("https://index.docker.io");
  }
  const url = new URL(`https://${host}`);
  // Docker and containerd take registries on this very machine for plain http, too.
  if (bareHost(url) === "localhost" || isLoopback(bareHost(url))) return new URL(`http://${host}`);
  return url;
}

interface Named {
  readonly base: URL;
  readonly path: string;
  readonly namespace: string | null;
  readonly isByPath?: true;
}

function namedRegistry(
  { path, query }: { path: string; query: string },
  fields: readonly Field[],
  config: MirrorConfig,
): Named | null {
  const header = override(fields, "registry");
  if (header !== null) return { base: headerUrl(header, config), path, namespace: null };
  const namespace = new URLSearchParams(query).get("ns");
  if (namespace !== null && namespace !== "") {
    if (!HOST.test(namespace) || URL.parse(`https://${namespace}`) === null) throw unreadable("ns", namespace);
    return { base: registryUrl(namespace, config), path, namespace };
  }
  const match = /^\/v2\/([^/]+)(\/[^/]+\/.+)$/.exec(path);
  const host = decode(match?.[1] ?? "").replace(PATH_PORT, ":$1");
  // Docker's rule for the first component of a reference: a host has a dot or a port, or is localhost.
  const isHost = (host === "localhost" || /[.:]/.test(host)) && HOST.test(host);
  if (!isHost || URL.parse(`https://${host}`) === null) return null;
  return { base: registryUrl(host, config), path: `/v2${match?.[2]}`, namespace: null, isByPath: true };
}

function headerUrl(text: string, config: MirrorConfig): URL {
  if (HOST.test(text) && URL.parse(`https://${text}`) !== null) return registryUrl(text, config);
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") {
    throw unreadable("X-Lacewing-Registry", text);
  }
  [url.search, url.hash] = ["", ""];
  return url;
}

function partsOf(path: string): Pick<RegistryTarget, "kind" | "repository"> {
  if (/^\/v2\/?$/.test(path)) return { kind: "ping", repository: "" };
  const match = /^\/v2\/(.+)\/(blobs|manifests|tags|referrers)\/[^/]+$/.exec(path);
  const repository = match?.[1] ?? "";
  if (match?.[2] === "blobs") return { kind: "blob", repository };
  return { kind: match?.[2] === "manifests" ? "manifest" : "other", repository };
}

function split(target: string): { path: string; query: string } {
  const at = target.indexOf("?");
  return at < 0 ? { path: target, query: "" } : { path: target.slice(0, at), query: target.slice(at) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function unreadable(what: string, value: string): LacewingError {
  const shown = JSON.stringify(value.slice(0, 100));
  return new LacewingError(
    "bad_request",
    `Cannot choose the registry: ${what} is ${shown}, want a host such as h:5000`,
  );
}
