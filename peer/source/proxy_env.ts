/**
 * Decides whether a URL is read through a proxy of the environment, by the
 * rules of Deno's fetch: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and
 * `NO_PROXY`, in upper or lower case. Pure. Behind a proxy it is the proxy
 * that resolves names, so that addresses cannot be judged or pinned here.
 */
import { isInNetwork } from "../core/address.ts";

export type Environment = (name: string) => string | undefined;

/** The proxy's URL as the environment gives it, or null for a direct connection. */
export function proxyFor(url: URL, env: Environment): string | null {
  const own = url.protocol === "https:" ? either("HTTPS_PROXY", env) : httpProxy(env);
  const proxy = either("ALL_PROXY", env) ?? own;
  if (proxy === null) return null;
  const exceptions = (either("NO_PROXY", env) ?? "").split(",").map((part) => part.trim().toLowerCase());
  return exceptions.some((exception) => covers(exception, bareHost(url))) ? null : proxy;
}

/** The same environment as if no host were excepted from its proxies. */
export function withoutExceptions(env: Environment): Environment {
  return (name) => /^no_proxy$/i.test(name) ? undefined : env(name);
}

/** A URL's host without port, and without the brackets of IPv6. */
export function bareHost(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, "$1");
}

function httpProxy(env: Environment): string | null {
  // Under CGI a request's header `Proxy` arrives as HTTP_PROXY (CVE-2016-5385).
  return env("REQUEST_METHOD") === undefined ? either("HTTP_PROXY", env) : null;
}

function either(name: string, env: Environment): string | null {
  return env(name) || env(name.toLowerCase()) || null;
}

function covers(exception: string, host: string): boolean {
  if (exception === "") return false;
  if (exception === "*" || exception === host) return true;
  if (exception.includes("/")) return isInNetwork(host, exception);
  return host.endsWith(`.${exception.replace(/^\./, "")}`) || exception === `.${host}`;
}
