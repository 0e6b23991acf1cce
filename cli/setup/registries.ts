/**
 * The registries that setup is asked for: how they are written on the command
 * line, and whether the daemon's proxy serves them. Pure.
 */
import { LacewingError } from "../../peer/core/errors.ts";
import type { ProxyFacts, Registry, SetupOrder } from "./plan.ts";

/** As in the daemon's own reading of a request (peer/proxy/registry_target.ts). */
const HOST = /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/;
const DOCKER_HUB_NAMES = ["docker.io", "index.docker.io", "registry-1.docker.io"];

export const DOCKER_HUB: Registry = { host: "docker.io", isPlain: false };

/**
 * Reads `HOST`, `HOST:PORT`, `http://HOST` or `https://HOST`.
 *
 * @throws {LacewingError} `usage`
 */
export function readRegistry(text: string): Registry {
  const [, scheme, rest = ""] = /^(?:(https?):\/\/)?(.*?)\/?$/is.exec(text) ?? [];
  const host = rest.toLowerCase();
  if (!HOST.test(host) || URL.parse(`https://${host}`) === null) {
    throw new LacewingError(
      "usage",
      `Cannot use --registry ${JSON.stringify(text)}: want a host such as registry.example.com or 10.0.0.5:5000`,
    );
  }
  return { host: hubOr(host), isPlain: scheme?.toLowerCase() === "http" };
}

/** The registries that a daemon is configured with: the one of nameless requests, and those with URLs of their own. */
export function knownTo({ url, registries }: ProxyFacts): Registry[] {
  const known = [{ host: hubOr(new URL(url).host), isPlain: url.startsWith("http:") }];
  for (const host of registries.map((one) => hubOr(one.toLowerCase()))) {
    if (!known.some((registry) => registry.host === host)) known.push({ host, isPlain: false });
  }
  return known;
}

/** The only registry that the proxy serves, where it does not go by what a request names; else null. */
export function theOne({ proxy }: SetupOrder): Registry | null {
  return proxy === null || proxy.dynamic ? null : knownTo(proxy)[0] ?? null;
}

/** @throws {LacewingError} `policy` for a registry that the daemon does not serve */
export function serves(order: SetupOrder, { host }: Registry): void {
  const one = theOne(order);
  if (one === null || one.host === host) return;
  throw new LacewingError(
    "policy",
    `Cannot set up ${host}: the daemon serves ${one.host} alone, because proxy.registryMirror.dynamic is false; set it ` +
      `to true, or name --registry ${one.host}`,
  );
}

function hubOr(host: string): string {
  return DOCKER_HUB_NAMES.includes(host) ? DOCKER_HUB.host : host;
}
