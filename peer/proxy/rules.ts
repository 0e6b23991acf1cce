/**
 * Decides what the proxy may be used for and how a URL goes: the white list,
 * the rules of the forward proxy, the ports of tunnels, the password. Pure.
 */
import { createHash } from "node:crypto";
import { timingSafeEqual } from "@std/crypto/timing-safe-equal";
import { bareHost } from "../source/proxy_env.ts";
import { portOf } from "../source/http_request.ts";

export interface ProxyRule {
  /** Searched in the whole URL. */
  readonly regx: RegExp;
  readonly useHTTPS: boolean;
  /** Not through the swarm. */
  readonly direct: boolean;
  /** Another host in place of the URL's own; empty leaves it. */
  readonly redirect: string;
}

export interface WhiteListEntry {
  /** Exact host name; empty names none. */
  readonly host: string;
  /** Searched in the host name; null names none. */
  readonly regx: RegExp | null;
  /** Empty is every port. */
  readonly ports: readonly number[];
}

/** Where a request goes, and whether through the swarm. */
export interface Way {
  readonly url: URL;
  readonly isShared: boolean;
}

/** The first rule that matches decides; without one the request goes straight on. */
export function wayOf(url: URL, { rules, method }: { rules: readonly ProxyRule[]; method: string }): Way {
  const rule = rules.find(({ regx }) => regx.test(url.href));
  if (rule === undefined) return { url, isShared: false };
  const target = new URL(url);
  if (rule.redirect !== "") {
    const to = new URL(/^https?:\/\//.test(rule.redirect) ? rule.redirect : `${target.protocol}//${rule.redirect}`);
    target.protocol = to.protocol;
    target.host = to.host;
    if (to.port === "") target.port = "";
  }
  if (rule.useHTTPS) target.protocol = "https:";
  return { url: target, isShared: !rule.direct && method === "GET" };
}

/** Whether a URL may be asked; an empty list allows all. */
export function isListed(url: URL, list: readonly WhiteListEntry[]): boolean {
  if (list.length === 0) return true;
  const entry = list.find((one) => names(one, bareHost(url)));
  return entry !== undefined && (entry.ports.length === 0 || entry.ports.includes(portOf(url)));
}

/** Whether a tunnel to this place may be opened: port 443, and ports that the white list names for the host. */
export function mayTunnel({ host, port }: { host: string; port: number }, list: readonly WhiteListEntry[]): boolean {
  if (list.length === 0) return port === 443;
  return list.some((entry) => names(entry, host) && (port === 443 || entry.ports.includes(port)));
}

/** Reads the target of CONNECT: a host and a port. */
export function tunnelTarget(target: string): { host: string; port: number } | null {
  const match = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})$/.exec(target);
  const port = Number(match?.[2] ?? 0);
  if (match === null || port < 1 || port > 65535) return null;
  const url = URL.parse(`http://${match[1]}:${port}`);
  return url === null ? null : { host: bareHost(url), port };
}

/** Whether `Proxy-Authorization` holds the name and password; nothing is asked where no name is configured. */
export function mayUse(given: string | null, { username, password }: { username: string; password: string }): boolean {
  if (username === "" && password === "") return true;
  const match = /^basic[ \t]+([A-Za-z0-9+/=]+)$/i.exec(given ?? "");
  const wanted = digest(new TextEncoder().encode(`${username}:${password}`));
  return timingSafeEqual(digest(fromBase64(match?.[1] ?? "")), wanted) && match !== null;
}

function names({ host, regx }: WhiteListEntry, hostname: string): boolean {
  return (host !== "" && host.toLowerCase() === hostname.toLowerCase()) || (regx !== null && regx.test(hostname));
}

function digest(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(createHash("sha256").update(bytes).digest());
}

function fromBase64(text: string): Uint8Array {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
