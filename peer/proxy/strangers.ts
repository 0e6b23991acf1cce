/**
 * Podman, skopeo, buildah and CRI-O name the registry in a path below the
 * mirror, and ask the mirror's `/v2/` for the way to sign in. That is answered
 * by the configured registry, so their token is of that one's realm, and no
 * other registry trusts it. What such a registry refuses with 401 is asked for
 * as a stranger: without credentials, or with the token that its realm gives
 * everyone.
 *
 * Keeps: the client's own credentials come first, and what a stranger is
 * refused stays refused. Credentials of clients only as digests.
 */
import type { Clock } from "../core/clock.ts";
import { sha256Hex } from "../core/digest.ts";
import { isCredential } from "./anonymous_token.ts";
import type { Field } from "./http_message.ts";
import { whoAsks } from "./origin_fields.ts";

export interface StrangersDeps {
  readonly clock: Clock;
  /** Headers with which everyone may read it, or null. */
  readonly strangersHeaders: (
    read: { readonly url: string; readonly headers: readonly Field[] },
    signal: AbortSignal,
  ) => Promise<Field[] | null>;
}

export interface RefusableRead {
  /** `ORIGIN REPOSITORY` */
  readonly scope: string;
  readonly url: URL;
  /** All that the client sent. */
  readonly fields: readonly Field[];
}

/** Tokens of the token protocol live 60 s at least. */
const HOLDS_MS = 45_000;
const REMEMBERED_MAX = 1000;

interface Way {
  readonly credentials: readonly Field[];
  readonly untilMs: number;
}

export class Strangers {
  /** The oldest first. */
  readonly #ways = new Map<string, Way>();

  constructor(private readonly deps: StrangersDeps) {}

  /** The fields to ask with where the client's own were refused just now, else its own. */
  known(read: RefusableRead): readonly Field[] {
    const way = this.#ways.get(keyOf(read));
    return way !== undefined && this.deps.clock.nowMs() < way.untilMs
      ? inPlace(read.fields, way.credentials)
      : read.fields;
  }

  /** The fields to ask with in place of the client's, which were refused; null: a stranger is given nothing either. */
  async find(read: RefusableRead, signal: AbortSignal): Promise<readonly Field[] | null> {
    // Without them registries know no manifest of OCI.
    const accept = read.fields.filter(([name]) => name.toLowerCase() === "accept");
    const asked = { url: read.url.href, headers: [...whoAsks(read.fields), ...accept] };
    const headers = await this.deps.strangersHeaders(asked, signal);
    if (headers === null) return null;
    const credentials = headers.filter(isCredential);
    const key = keyOf(read);
    this.#ways.delete(key);
    this.#ways.set(key, { credentials, untilMs: this.deps.clock.nowMs() + HOLDS_MS });
    for (const oldest of this.#ways.keys()) {
      if (this.#ways.size <= REMEMBERED_MAX) break;
      this.#ways.delete(oldest);
    }
    return inPlace(read.fields, credentials);
  }
}

function inPlace(fields: readonly Field[], credentials: readonly Field[]): Field[] {
  return [...fields.filter((field) => !isCredential(field)), ...credentials];
}

function keyOf({ scope, fields }: RefusableRead): string {
  return sha256Hex(JSON.stringify([scope, fields.filter(isCredential)]));
}
