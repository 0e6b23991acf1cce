/**
 * Finds out how everyone may read what a client's token no longer opens: a
 * token that ran out in mid-content cannot be renewed by the client, which
 * waits for bytes. Asks without credentials, and where the registry names a
 * realm, that realm for a token of the scope that it names.
 *
 * Keeps: the client's credentials go nowhere; what is found gives nothing that
 * a stranger would not be given.
 */
import { parseChallenges } from "../core/challenge.ts";
import { LacewingError } from "../core/errors.ts";
import { type Field, valuesOf } from "./http_message.ts";
import type { OriginAnswer, OriginClient } from "./origin_client.ts";

export interface RefusedRead {
  readonly url: string;
  readonly headers: readonly Field[];
}

const ANSWER_LENGTH_MAX = 256 * 1024;
/** RFC 6750 section 2.1. */
const TOKEN = /^[\w.~+/-]+=*$/;
const TOKEN_LENGTH_MAX = 16 * 1024;
const TIMEOUT_MS = 10_000;

/** @returns the headers with which everyone may read it, or null: the client's own right is the only one, or it has none */
export async function anonymousHeaders(
  client: Pick<OriginClient, "send">,
  read: RefusedRead,
  signal: AbortSignal,
): Promise<Field[] | null> {
  return read.headers.some(isCredential) ? await strangersHeaders(client, read, signal) : null;
}

/** The same for a client without credentials as well, which may not have known that a token is wanted. */
export async function strangersHeaders(
  client: Pick<OriginClient, "send">,
  { url, headers }: RefusedRead,
  signal: AbortSignal,
): Promise<Field[] | null> {
  const strangers = headers.filter((field) => !isCredential(field));
  const limit = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  try {
    const realm = await strangersWay(client, { url: new URL(url), headers: strangers }, limit);
    if (realm === null || realm === "open") return realm === null ? null : strangers;
    const token = await tokenOf(client, realm, limit);
    return token === null ? null : [...strangers, ["Authorization", `Bearer ${token}`]];
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof LacewingError || error === limit.reason) return null;
    throw error;
  }
}

export function isCredential([name]: Field): boolean {
  return /^(?:authorization|cookie)$/i.test(name);
}

/** Where a stranger gets a token, `open` where none is needed, null where strangers get nothing. */
async function strangersWay(
  client: Pick<OriginClient, "send">,
  { url, headers }: { url: URL; headers: readonly Field[] },
  signal: AbortSignal,
): Promise<URL | "open" | null> {
  const fields: Field[] = [...headers, ["Range", "bytes=0-0"], ["Accept-Encoding", "identity"]];
  using answer = await client.send({ method: "GET", url, fields, body: null }, signal);
  const { status, fields: told } = answer.head;
  if (status >= 200 && status < 400) return "open";
  if (status !== 401) return null;
  const challenges = parseChallenges(valuesOf(told, "www-authenticate").join(", "));
  const { realm = "", service, scope } = challenges.find(({ scheme }) => scheme === "bearer")?.parameters ?? {};
  const found = URL.parse(realm);
  if (found === null || !/^https?:$/.test(found.protocol)) return null;
  // A token that everyone gets is still nothing to be changed on the way.
  if (url.protocol === "https:" && found.protocol !== "https:") return null;
  if (service !== undefined) found.searchParams.set("service", service);
  for (const one of (scope ?? "").split(" ")) if (one !== "") found.searchParams.append("scope", one);
  [found.username, found.password, found.hash] = ["", "", ""];
  return found;
}

async function tokenOf(
  client: Pick<OriginClient, "send">,
  url: URL,
  signal: AbortSignal,
): Promise<string | null> {
  const fields: Field[] = [["Accept", "application/json"], ["Accept-Encoding", "identity"]];
  using answer = await client.send({ method: "GET", url, fields, body: null }, signal);
  if (answer.head.status !== 200) return null;
  const text = await textOf(answer);
  try {
    const { token, access_token = token } = JSON.parse(text ?? "null") ?? {};
    const isToken = typeof access_token === "string" && access_token.length <= TOKEN_LENGTH_MAX &&
      TOKEN.test(access_token);
    return isToken ? access_token : null;
  } catch {
    return null;
  }
}

async function textOf(answer: OriginAnswer): Promise<string | null> {
  const decoder = new TextDecoder();
  let text = "";
  for (let bytes = await answer.read(); bytes !== null; bytes = await answer.read()) {
    text += decoder.decode(bytes, { stream: true });
    if (text.length > ANSWER_LENGTH_MAX) return null;
  }
  return text + decoder.decode();
}
