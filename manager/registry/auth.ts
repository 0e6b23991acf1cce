/**
 * Answers a registry's challenge: Bearer tokens (Docker registry v2 token
 * flow: GET with Basic, or the OAuth2 form where GET is not there) and Basic.
 * Credentials go to the registry's own origin and to the realm that it names,
 * never in clear text when the registry is https. Tokens are kept until
 * shortly before they expire, each under the credentials that got it.
 */
import { Buffer } from "node:buffer";
import type { Clock } from "../../peer/core/clock.ts";
import { sha256Hex } from "../../peer/core/digest.ts";
import { LacewingError } from "../../peer/core/errors.ts";
import { redactText } from "../../peer/core/log.ts";
import { type Challenge, parseChallenges } from "../../peer/core/challenge.ts";
import type { GuardedFetch, GuardedRequest, GuardedResponse } from "./guarded_fetch.ts";

/** Who asks for what. */
export interface AuthRequest {
  /** Origin of the registry: `https://registry.example.com`. */
  readonly origin: string;
  /** Repository. */
  readonly name: string;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

export interface AuthOptions {
  readonly signal: AbortSignal;
  /** A token from before is not good enough, unless it is only seconds old: it was refused, or a new one is wanted. */
  readonly fresh?: boolean;
}

interface CachedToken {
  readonly value: string;
  readonly askedAtMs: number;
  readonly expiresAtMs: number;
}

const TOKEN_ANSWER_LENGTH_MAX = 256 * 1024;
/** Docker's token specification: a token without `expires_in` lives 60 s. */
const TOKEN_LIFE_DEFAULT_S = 60;
/** Left over when a token counts as expired, so that a request under way still passes. */
const TOKEN_MARGIN_MS = 10_000;
const TOKEN_COUNT_MAX = 1000;
/** A token of this age is new: many items of one image ask for a new one at about the same time. */
const FRESH_MS = 5_000;
const CLIENT_ID = "lacewing";

export class RegistryAuth {
  readonly #tokens = new Map<string, CachedToken>();

  constructor(private readonly fetch: GuardedFetch, private readonly clock: Clock) {}

  /**
   * The `Authorization` value that answers a 401.
   *
   * @param header `WWW-Authenticate` of the answer
   * @throws {LacewingError} `source_refused` saying what was tried, `protocol` if the registry's
   * challenge or the token answer cannot be used; `source_failed` and the errors of the connection.
   */
  async authorize(header: string | null, request: AuthRequest, options: AuthOptions): Promise<string> {
    const challenges = parseChallenges(header);
    const bearer = challenges.find(({ scheme, parameters }) => scheme === "bearer" && parameters.realm !== undefined);
    if (bearer !== undefined) return `Bearer ${await this.#token(bearer, request, options)}`;
    if (!challenges.some(({ scheme }) => scheme === "basic")) {
      const schemes = challenges.map(({ scheme }) => scheme).join(", ") || "none";
      throw new LacewingError(
        "source_refused",
        `Cannot sign in at ${request.origin}: it asks for ${schemes}, want Bearer with a realm, or Basic`,
      );
    }
    const basic = basicOf(request);
    if (basic === null) throw refused(request, request.origin, "it asks for a username and password, none were given");
    return basic;
  }

  async #token(challenge: Challenge, request: AuthRequest, options: AuthOptions): Promise<string> {
    const { service = "", scope = `repository:${request.name}:pull` } = challenge.parameters;
    const realm = realmOf(challenge, request);
    const key = sha256Hex(JSON.stringify([realm.href, service, scope, request.username, request.password]));
    const askedAtMs = this.clock.nowMs();
    const cached = this.#tokens.get(key);
    const isFresh = options.fresh !== true || askedAtMs - (cached?.askedAtMs ?? 0) < FRESH_MS;
    if (cached !== undefined && isFresh && cached.expiresAtMs > askedAtMs) return cached.value;
    const { value, lifeMs } = await this.#ask({ realm, service, scope }, request, options.signal);
    this.#tokens.delete(key);
    const oldest = this.#tokens.keys().next();
    if (this.#tokens.size >= TOKEN_COUNT_MAX && !oldest.done) this.#tokens.delete(oldest.value);
    // A short life keeps at least half of itself: a margin alone would make it useless.
    const expiresAtMs = askedAtMs + Math.max(lifeMs - TOKEN_MARGIN_MS, lifeMs / 2);
    this.#tokens.set(key, { value, askedAtMs, expiresAtMs });
    return value;
  }

  async #ask(
    { realm, service, scope }: { realm: URL; service: string; scope: string },
    request: AuthRequest,
    signal: AbortSignal,
  ): Promise<{ value: string; lifeMs: number }> {
    const basic = basicOf(request);
    const query = new URL(realm);
    if (service !== "") query.searchParams.append("service", service);
    for (const one of scope.split(" ").filter((text) => text !== "")) query.searchParams.append("scope", one);
    if (basic !== null) query.searchParams.append("account", request.username ?? "");
    const limits = { signal, maxBytes: TOKEN_ANSWER_LENGTH_MAX };
    const headers: Record<string, string> = basic === null ? {} : { authorization: basic };
    let answer = await this.#fetch(query.href, { method: "GET", headers, ...limits });
    if ((answer.status === 404 || answer.status === 405) && basic !== null) {
      const form = { grant_type: "password", service, scope, client_id: CLIENT_ID };
      const body = new URLSearchParams({ ...form, username: request.username ?? "", password: request.password ?? "" });
      const type = { "content-type": "application/x-www-form-urlencoded" };
      answer = await this.#fetch(realm.href, { method: "POST", headers: type, body: body.toString(), ...limits });
    }
    return readToken(answer, request, realm);
  }

  #fetch(url: string, init: GuardedRequest): Promise<GuardedResponse> {
    return this.fetch(url, { ...init, headers: { accept: "application/json", ...init.headers } });
  }
}

/** The refusal of a registry or its token server, saying who was refused what. */
export function refused({ name, username }: AuthRequest, by: string, reason: string): LacewingError {
  const who = username === undefined ? "anonymous access" : `user ${JSON.stringify(username.slice(0, 100))}`;
  return new LacewingError(
    "source_refused",
    `${redactText(by)} refused ${who} for repository ${JSON.stringify(name)}: ${reason}`,
  );
}

function basicOf({ username, password }: AuthRequest): string | null {
  if (username === undefined && password === undefined) return null;
  return `Basic ${Buffer.from(`${username ?? ""}:${password ?? ""}`, "utf8").toString("base64")}`;
}

function realmOf({ parameters }: Challenge, { origin }: AuthRequest): URL {
  const text = parameters.realm ?? "";
  const realm = URL.parse(text);
  const shown = JSON.stringify(redactText(text.slice(0, 300)));
  if (
    realm === null || !["http:", "https:"].includes(realm.protocol) || realm.username !== "" || realm.password !== ""
  ) {
    throw new LacewingError("protocol", `Cannot sign in at ${origin}: realm ${shown} is no http or https URL`);
  }
  if (origin.startsWith("https:") && realm.protocol !== "https:") {
    throw new LacewingError(
      "policy",
      `Cannot sign in at ${origin}: realm ${shown} is not https, so that credentials would go in clear text`,
    );
  }
  realm.hash = "";
  return realm;
}

function readToken(answer: GuardedResponse, request: AuthRequest, realm: URL): { value: string; lifeMs: number } {
  const server = `token server ${realm.origin}${realm.pathname} of ${request.origin}`;
  const { status } = answer;
  if (status >= 500 || status === 429) {
    throw new LacewingError("source_failed", `Cannot sign in: ${server} answered ${status}`);
  }
  if (status < 200 || status > 299) throw refused(request, server, `it answered ${status}`);
  const { token, access_token, expires_in } = parseAnswer(answer.bytes, server);
  const value = [token, access_token].find((candidate) => typeof candidate === "string" && candidate !== "");
  // Visible ASCII only: anything else could not stand in a header, or would end it.
  if (typeof value !== "string" || !/^[\x21-\x7e]{1,65536}$/.test(value)) {
    throw new LacewingError("protocol", `Cannot sign in: ${server} answered without a usable token`);
  }
  const isLife = typeof expires_in === "number" && Number.isFinite(expires_in) && expires_in > 0;
  return { value, lifeMs: (isLife ? expires_in : TOKEN_LIFE_DEFAULT_S) * 1000 };
}

function parseAnswer(bytes: Uint8Array, server: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  } catch (cause) {
    throw new LacewingError("protocol", `Cannot sign in: ${server} did not answer with JSON`, { cause });
  }
  throw new LacewingError("protocol", `Cannot sign in: ${server} did not answer with a JSON object`);
}
