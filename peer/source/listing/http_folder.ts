/**
 * Lists one folder of an HTTP origin: asks for its page, and where there is
 * none, for its WebDAV properties. Nothing outside of the start folder is ever
 * an entry; a folder that redirects out of it is refused.
 */
import { LacewingError } from "../../core/errors.ts";
import { type AnswerFacts, isPassing, readAnswer } from "../http_answer.ts";
import { shownUrl } from "../http_request.ts";
import type { SourceBody } from "../source.ts";
import { folderOf, isWithin } from "./links.ts";
import type { Listing, ListRequest } from "./listing.ts";
import { mayBeListing, pageText, readListing } from "./read_listing.ts";

/** One request for a folder. */
export interface FolderQuestion {
  readonly url: string;
  readonly headers: ListRequest["headers"];
  readonly method: "GET" | "PROPFIND";
  readonly body?: string;
}

/** An answer after redirects, whatever its status. */
export interface FolderAnswer {
  readonly url: URL;
  readonly status: number;
  readonly contentType: string;
  /** Null where it is no page (`mayBeListing`) or no success. */
  readonly bytes: Uint8Array | null;
  /** What the status means, for all but 200 and 207. */
  readonly failure: LacewingError | null;
}

export type AskFolder = (question: FolderQuestion) => Promise<FolderAnswer>;

/** Bytes of one page: nginx writes about 200 for an entry, so that this is a folder of 300,000. */
const PAGE_LENGTH_MAX = 64 * 1024 * 1024;
/** Caddy gives JSON to who takes it; it tells exact lengths and times. */
const ACCEPT = ["accept", "text/html, application/json;q=0.9, application/xml;q=0.8, */*;q=0.5"] as const;
const PROPERTIES = '<?xml version="1.0" encoding="utf-8"?>\n<propfind xmlns="DAV:"><prop><resourcetype/>' +
  "<getcontentlength/><getlastmodified/></prop></propfind>\n";
/** Answers to GET of a folder that says nothing about WebDAV: forbidden, not found, not allowed, not implemented. */
const MAY_BE_WEBDAV = new Set([200, 403, 404, 405, 501]);

/** @throws {LacewingError} as `Source.open`, and `usage` when the URL is no folder */
export async function listHttpFolder(ask: AskFolder, request: ListRequest): Promise<Listing> {
  const styles = request.style === "webdav" ? [byProperties, byPage] : [byPage, byProperties];
  const first = await styles[0]!(ask, request);
  if (first.listing !== null) return first.listing;
  const second = MAY_BE_WEBDAV.has(first.answer.status) || request.style === "webdav"
    ? await styles[1]!(ask, request)
    : null;
  if (second?.listing) return second.listing;
  // What the page said tells more than "405" to a PROPFIND.
  const { failure, contentType } = request.style === "webdav" && second !== null ? second.answer : first.answer;
  if (failure !== null) throw failure;
  const what = contentType === "" ? "no folder page" : `no folder page but ${contentType.slice(0, 60)}`;
  const text = `Cannot list ${shownUrl(new URL(request.url))}: it is ${what}`;
  if (request.start !== null) throw new LacewingError("source_failed", text);
  throw new LacewingError("usage", `${text}; leave out --recursive to download it`);
}

/**
 * Reads the answer to a question for a folder.
 *
 * @param bodyOf opens the answer's body
 * @throws {LacewingError} what another try may change
 */
export async function readFolderAnswer(
  { url, status, headers }: { url: URL; status: number; headers: Headers },
  bodyOf: (facts: AnswerFacts) => SourceBody,
): Promise<FolderAnswer> {
  const contentType = headers.get("content-type") ?? "";
  let facts: AnswerFacts;
  try {
    facts = readAnswer({ url, range: null }, status === 207 ? 200 : status, headers);
  } catch (error) {
    // 501 is a server that does not know the method.
    if (!(error instanceof LacewingError) || (isPassing(status) && status !== 501)) throw error;
    await using _unread = bodyOf(UNKNOWN);
    return { url, status, contentType, bytes: null, failure: error };
  }
  await using body = bodyOf(facts);
  const bytes = mayBeListing(contentType) ? await readAll(body, url) : null;
  return { url, status, contentType, bytes, failure: null };
}

async function readAll(body: SourceBody, url: URL): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (let bytes = await body.read(); bytes !== null; bytes = await body.read()) {
    length += bytes.length;
    if (length > PAGE_LENGTH_MAX) {
      const text = `Cannot list ${shownUrl(url)}: its page has more than ${PAGE_LENGTH_MAX} B`;
      throw new LacewingError("source_failed", text);
    }
    chunks.push(bytes.slice());
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

/** Of a body that nobody reads. */
const UNKNOWN: AnswerFacts = { contentLength: null, ranges: false, version: {}, offset: 0, length: null };

interface Attempt {
  readonly answer: FolderAnswer;
  readonly listing: Listing | null;
}

async function byPage(ask: AskFolder, request: ListRequest): Promise<Attempt> {
  const isGiven = request.headers.some(([name]) => name.toLowerCase() === "accept");
  const headers = isGiven ? request.headers : [...request.headers, ACCEPT];
  const answer = await ask({ url: request.url, headers, method: "GET" });
  return { answer, listing: await read(answer, request) };
}

async function byProperties(ask: AskFolder, request: ListRequest): Promise<Attempt> {
  const headers = [...request.headers, ["depth", "1"], ["content-type", 'application/xml; charset="utf-8"']] as const;
  const answer = await ask({ url: request.url, headers, method: "PROPFIND", body: PROPERTIES });
  return { answer, listing: answer.status === 207 ? await read(answer, request) : null };
}

async function read(answer: FolderAnswer, request: ListRequest): Promise<Listing | null> {
  if (answer.failure !== null) return null;
  const url = new URL(answer.url);
  // A collection may be told without the slash that it is named by.
  if (answer.status === 207 && !url.pathname.endsWith("/")) url.pathname += "/";
  url.search = "";
  url.hash = "";
  const start = request.start === null ? folderOf(url) : new URL(request.start);
  if (!isWithin(url, start)) {
    const [from, to] = [shownUrl(new URL(request.url)), shownUrl(url)];
    throw new LacewingError("policy", `Cannot list ${from}: it redirects to ${to}, which lies outside of the folder`);
  }
  if (answer.bytes === null) return null;
  const page = { url, start, text: pageText(answer.bytes, answer.contentType) };
  const found = await readListing(page, answer.contentType);
  if (found === null) return null;
  const { entries, refused, style } = found;
  return { url: folderOf(url).href, start: start.href, style, entries, refused };
}
