/**
 * Finds out who calls, from the bearer token: the admin token, the cluster's
 * join token, or a personal access token. Tokens are compared as digests in
 * constant time; whoever fails often has to wait.
 */
import { timingSafeEqual } from "@std/crypto/timing-safe-equal";
import { sha256Hex } from "../../peer/core/digest.ts";
import { LacewingError } from "../../peer/core/errors.ts";
import type { TokenStore } from "../store/tokens.ts";
import type { Caller } from "./access.ts";
import { Throttle } from "./throttle.ts";

export interface AuthenticatorDeps {
  readonly tokens: Pick<TokenStore, "find" | "used">;
  /** Wall clock, milliseconds. */
  readonly now: () => number;
}

export interface AuthenticatorConfig {
  readonly adminToken: string;
  /** Empty: hosts have none. */
  readonly joinToken: string;
}

export class Authenticator {
  readonly #deps: AuthenticatorDeps;
  readonly #adminDigest: string;
  readonly #joinDigest: string | null;
  readonly #throttle = new Throttle();

  constructor(deps: AuthenticatorDeps, { adminToken, joinToken }: AuthenticatorConfig) {
    this.#deps = deps;
    this.#adminDigest = sha256Hex(adminToken);
    this.#joinDigest = joinToken === "" ? null : sha256Hex(joinToken);
  }

  /** @returns milliseconds that an address has to wait before it may try again */
  waitMs(address: string): number {
    return this.#throttle.waitMs(address, this.#deps.now());
  }

  /**
   * Who shows this header.
   *
   * @throws {LacewingError} `unauthorized`; `too_many_requests` while the address has to wait.
   */
  async authenticate(authorization: string | undefined, address: string): Promise<Caller> {
    if (this.waitMs(address) > 0) {
      throw new LacewingError(
        "too_many_requests",
        "Cannot check the token: too many wrong ones came from this address",
      );
    }
    const token = /^bearer +([^\s]+)$/i.exec(authorization?.trim() ?? "")?.[1];
    if (token === undefined) {
      throw new LacewingError(
        "unauthorized",
        "Cannot let you in: want a bearer token in the Authorization header",
      );
    }
    const caller = await this.#callerOf(sha256Hex(token));
    if (caller !== null) return caller;
    this.#throttle.failed(address, this.#deps.now());
    throw new LacewingError("unauthorized", "Cannot let you in: the token is unknown, revoked or expired");
  }

  async #callerOf(digest: string): Promise<Caller | null> {
    if (sameDigest(digest, this.#adminDigest)) return { name: "admin", scopes: ["admin"] };
    if (this.#joinDigest !== null && sameDigest(digest, this.#joinDigest)) {
      return { name: "join token", scopes: ["peer"] };
    }
    const token = await this.#deps.tokens.find(digest);
    if (token === null || !sameDigest(digest, token.digest)) return null;
    if (token.expiresAtMs !== null && token.expiresAtMs <= this.#deps.now()) return null;
    await this.#deps.tokens.used(token);
    return { name: token.name, scopes: token.scopes };
  }
}

/** Both are SHA-256 hex, so of one length. */
function sameDigest(a: string, b: string): boolean {
  const encoder = new TextEncoder();
  return timingSafeEqual(encoder.encode(a), encoder.encode(b));
}
