/**
 * Reads manifests of one repository: signs in when challenged, retries what
 * may pass, and takes no byte that does not have the digest it was asked by or
 * announced with. Every failure names the URL and the reason.
 */
import type { Clock } from "../../peer/core/clock.ts";
import { type DigestAlgorithm, startDigest } from "../../peer/core/digest.ts";
import { LacewingError } from "../../peer/core/errors.ts";
import { redactText } from "../../peer/core/log.ts";
import { type AuthRequest, refused, type RegistryAuth } from "./auth.ts";
import type { GuardedFetch, GuardedResponse } from "./guarded_fetch.ts";
import { type Manifest, MANIFEST_ACCEPT, MANIFEST_LENGTH_MAX, parseManifest } from "./manifest.ts";
import { isOciDigest, type ManifestReference, manifestUrl } from "./reference.ts";

/** Who asks, and with which headers. */
export interface RegistryAccess {
  readonly reference: ManifestReference;
  /** Sent with every request to the registry; an `authorization` among them is used as it is. */
  readonly headers: Readonly<Record<string, string>>;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

export interface FetchedManifest {
  readonly manifest: Manifest;
  readonly digest: string;
  /** Bytes. */
  readonly length: number;
}

export interface RegistryDeps {
  readonly fetch: GuardedFetch;
  readonly auth: RegistryAuth;
  readonly clock: Clock;
}

/** Waits before each retry; `Retry-After` may make one longer. */
const RETRY_MS: readonly number[] = [300, 1000, 3000];
const RETRY_AFTER_MS_MAX = 15_000;
const RETRYABLE_STATUS: readonly number[] = [429, 500, 502, 503, 504];

export class RegistryClient {
  readonly #auth: AuthRequest;
  #authorization: string | null;
  /** One sign-in at a time, however many manifests are read at once. */
  #signingIn: Promise<void> | null = null;

  constructor(private readonly deps: RegistryDeps, private readonly access: RegistryAccess) {
    const { reference, username, password, headers } = access;
    this.#auth = { origin: reference.origin, name: reference.name, username, password };
    this.#authorization = headers.authorization ?? null;
  }

  /** The `Authorization` value that the registry has accepted, or null when it asked for none. */
  get authorization(): string | null {
    return this.#authorization;
  }

  /** Reads a manifest by tag or digest and checks its bytes. */
  async manifest(reference: string, signal: AbortSignal): Promise<FetchedManifest> {
    const url = manifestUrl(this.access.reference, reference);
    try {
      const response = await this.#ask(url, signal);
      const digest = checkDigest(response, reference);
      const manifest = parseManifest(response.bytes, response.headers.get("content-type"));
      return { manifest, digest, length: response.bytes.length };
    } catch (error) {
      throw located(error, url);
    }
  }

  /** Signs in anew and asks whether the manifest is still readable. */
  async refresh(reference: string, signal: AbortSignal): Promise<void> {
    const url = manifestUrl(this.access.reference, reference);
    if (this.access.headers.authorization !== undefined) return;
    try {
      const response = await this.#send(url, { method: "HEAD", authorization: null, signal });
      if (response.status === 401) await this.#signIn(response, { signal, fresh: true });
      else this.#checked(response);
    } catch (error) {
      throw located(error, url);
    }
  }

  async #ask(url: string, signal: AbortSignal): Promise<GuardedResponse> {
    const sent = this.#authorization;
    const first = await this.#send(url, { method: "GET", authorization: sent, signal });
    if (first.status !== 401) return this.#checked(first);
    if (this.access.headers.authorization !== undefined) {
      throw refused(this.#auth, this.#auth.origin, "it does not accept the Authorization header given");
    }
    await this.#signIn(first, { signal, fresh: sent !== null && sent === this.#authorization });
    const second = await this.#send(url, { method: "GET", authorization: this.#authorization, signal });
    if (second.status !== 401) return this.#checked(second);
    // A token from the cache may have been withdrawn before its time; a password stays wrong.
    if (sent === null && this.#authorization?.startsWith("Bearer ")) {
      await this.#signIn(second, { signal, fresh: true });
      const third = await this.#send(url, { method: "GET", authorization: this.#authorization, signal });
      return this.#checked(third);
    }
    return this.#checked(second);
  }

  #checked(response: GuardedResponse): GuardedResponse {
    const { status } = response;
    if (status === 200) return response;
    const reason = `it answered ${status}${registryMessage(response)}`;
    if (status === 401 || status === 403) throw refused(this.#auth, this.#auth.origin, reason);
    if (status === 404 || status === 410) throw new LacewingError("source_not_found", reason);
    throw new LacewingError("source_failed", reason);
  }

  async #signIn(response: GuardedResponse, options: { signal: AbortSignal; fresh: boolean }): Promise<void> {
    const before = this.#authorization;
    while (this.#signingIn !== null) await this.#signingIn.catch(() => {});
    if (this.#authorization !== before) return;
    const header = response.headers.get("www-authenticate");
    const signIn = async () => {
      this.#authorization = await this.#retrying(() => this.deps.auth.authorize(header, this.#auth, options), options);
    };
    this.#signingIn = signIn();
    try {
      await this.#signingIn;
    } finally {
      this.#signingIn = null;
    }
  }

  async #send(
    url: string,
    { method, authorization, signal }: { method: "GET" | "HEAD"; authorization: string | null; signal: AbortSignal },
  ): Promise<GuardedResponse> {
    const headers = { ...this.access.headers, accept: MANIFEST_ACCEPT };
    const signed = authorization === null ? headers : { ...headers, authorization };
    return await this.#retrying(
      () => this.deps.fetch(url, { method, headers: signed, signal, maxBytes: MANIFEST_LENGTH_MAX }),
      { signal },
    );
  }

  async #retrying<T>(attempt: () => Promise<T>, { signal }: { signal: AbortSignal }): Promise<T> {
    for (let tries = 0;; tries++) {
      const waitMs = RETRY_MS[tries];
      let afterMs = 0;
      try {
        const result = await attempt();
        if (waitMs === undefined || !isRetryableAnswer(result)) return result;
        afterMs = retryAfterMs(result.headers);
      } catch (error) {
        signal.throwIfAborted();
        const isRetryable = error instanceof LacewingError &&
          (error.code === "network" || error.code === "source_failed");
        if (waitMs === undefined || !isRetryable) throw error;
      }
      await this.deps.clock.sleep(Math.max(waitMs, afterMs), signal);
    }
  }
}

function isRetryableAnswer(value: unknown): value is GuardedResponse {
  return typeof value === "object" && value !== null && "status" in value &&
    RETRYABLE_STATUS.includes(value.status as number);
}

function retryAfterMs(headers: Headers): number {
  const text = headers.get("retry-after") ?? "";
  return /^\d{1,9}$/.test(text) ? Math.min(Number(text) * 1000, RETRY_AFTER_MS_MAX) : 0;
}

/** Checks the bytes against the digest asked by and the one announced. @returns the digest */
function checkDigest({ bytes, headers }: GuardedResponse, reference: string): string {
  const announced = headers.get("docker-content-digest");
  const wanted = [reference, announced].filter((text) => isOciDigest(text));
  for (const digest of wanted) {
    const actual = digestOf(bytes, digest.startsWith("sha512:") ? "sha512" : "sha256");
    if (actual !== digest) {
      throw new LacewingError("digest_mismatch", `its digest is ${actual}, expected ${digest}`);
    }
  }
  return wanted[0] ?? digestOf(bytes, "sha256");
}

function digestOf(bytes: Uint8Array, algorithm: DigestAlgorithm): string {
  return `${algorithm}:${startDigest(algorithm).update(bytes).digest("hex")}`;
}

/** The registry's own words, from the specification's error envelope; empty when there are none. */
function registryMessage({ bytes }: GuardedResponse): string {
  try {
    const body = JSON.parse(new TextDecoder().decode(bytes.subarray(0, 8192)));
    const { code, message } = body?.errors?.[0] ?? {};
    const words = [code, message].filter((part) => typeof part === "string" && part !== "").join(": ");
    // deno-lint-ignore no-control-regex
    return words === "" ? "" : ` (${redactText(words.replace(/[\x00-\x1f\x7f]+/g, " ")).slice(0, 300)})`;
  } catch {
    return "";
  }
}

/** The same error with the URL in front, unless its message names it already. */
function located(error: unknown, url: string): unknown {
  if (!(error instanceof LacewingError) || error.message.includes(url)) return error;
  return new LacewingError(error.code, `Cannot read ${url}: ${error.message}`, { cause: error.cause ?? error });
}
