/**
 * Resolves an origin's name and judges every address it has, so that no
 * request goes to a link-local or metadata address, nor to a private one where
 * that is not allowed. Answers are remembered for a short while.
 *
 * A connection made to one of the returned addresses is safe from a name that
 * changes its mind in between; one that resolves the name again is not.
 */
import { lookup } from "node:dns/promises";
import { addressRefusal } from "../core/address.ts";
import type { Clock } from "../core/clock.ts";
import { LacewingError } from "../core/errors.ts";
import { hostAndPort } from "./http_request.ts";
import { bareHost } from "./proxy_env.ts";

/** As long as a keep-alive connection usually stays: asking more often gains nothing. */
const REMEMBER_MS = 30_000;
const REMEMBERED_MAX = 256;

/** All addresses of a name; an IP address has itself. */
export type Lookup = (host: string) => Promise<string[]>;

export interface ResolverDeps {
  readonly clock: Clock;
  readonly lookup?: Lookup;
}

export class Resolver {
  readonly #deps: Required<ResolverDeps>;
  readonly #allowPrivateNetworks: boolean;
  readonly #known = new Map<string, { addresses: string[]; untilMs: number }>();

  constructor(deps: ResolverDeps, { allowPrivateNetworks }: { allowPrivateNetworks: boolean }) {
    this.#deps = { lookup: systemLookup, ...deps };
    this.#allowPrivateNetworks = allowPrivateNetworks;
  }

  /**
   * Addresses of a URL's host, at least one, all of them allowed.
   *
   * @throws {LacewingError} `network` if the name has none, `policy` if one of them is refused.
   */
  async resolve(url: URL, signal: AbortSignal): Promise<string[]> {
    const host = bareHost(url);
    const addresses = await this.#addressesOf(host, { url, signal });
    for (const address of addresses) this.#judge(url, address);
    return addresses;
  }

  /** Judges a host that is an IP address itself; a name, which a proxy resolves, passes. */
  judgeLiteral(url: URL): void {
    if (isLiteral(bareHost(url))) this.#judge(url, bareHost(url));
  }

  #judge(url: URL, address: string): void {
    const reason = addressRefusal(address, { allowPrivateNetworks: this.#allowPrivateNetworks });
    if (reason === null) return;
    throw new LacewingError("policy", `Cannot ask ${hostAndPort(url)}: its address ${address} ${reason}`);
  }

  async #addressesOf(host: string, { url, signal }: { url: URL; signal: AbortSignal }): Promise<string[]> {
    if (isLiteral(host)) return [host];
    const known = this.#known.get(host);
    if (known !== undefined && known.untilMs > this.#deps.clock.nowMs()) return known.addresses;
    let addresses: string[];
    try {
      addresses = await unlessAborted(this.#deps.lookup(host), signal);
    } catch (cause) {
      signal.throwIfAborted();
      const reason = cause instanceof Error && "code" in cause ? cause.code : "lookup failed";
      throw new LacewingError("network", `Cannot reach ${hostAndPort(url)}: name not resolved (${reason})`, { cause });
    }
    if (addresses.length === 0) {
      throw new LacewingError("network", `Cannot reach ${hostAndPort(url)}: the name has no address`);
    }
    this.#remember(host, addresses);
    return addresses;
  }

  #remember(host: string, addresses: string[]): void {
    this.#known.delete(host);
    this.#known.set(host, { addresses, untilMs: this.#deps.clock.nowMs() + REMEMBER_MS });
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= REMEMBERED_MAX) break;
      this.#known.delete(oldest);
    }
  }
}

function isLiteral(host: string): boolean {
  // A URL's host that looks like IPv4 was already brought to four numbers by the URL parser.
  return host.includes(":") || /^\d+\.\d+\.\d+\.\d+$/.test(host);
}

/** As the system resolves names, `/etc/hosts` included, in its order of preference. */
async function systemLookup(host: string): Promise<string[]> {
  const found = await lookup(host, { all: true, order: "verbatim" });
  return found.map(({ address }) => address);
}

function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) return onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
