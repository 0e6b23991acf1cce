/**
 * One way of receiving pieces into a file, as a process of its own:
 *   transfer_receive.ts WAY DIGEST URL SIZE FILE
 * prints `ready`, begins when a line comes, prints `done DIGESTS` and waits.
 *
 * One piece after the other over one connection, written at its position;
 * DIGEST (none, main, worker, after) is that of each piece. With `-` as FILE
 * the bytes are dropped: the other end of the sending ways.
 */
import { createHash } from "node:crypto";
import { closeSync, openSync, readSync, write, writeSync } from "node:fs";
import { connect } from "node:net";
import { digester } from "./transfer_digest.ts";
import { BUFFER_LENGTH, headEnd, type Piece, piecesOf, rangeField, requestHead } from "./transfer_pieces.ts";

export const DIGESTS = ["none", "main", "worker", "after"] as const;
export type DigestWay = typeof DIGESTS[number];

/** Takes bytes of the piece as they come; they may be overwritten when it returns (or its promise resolves). */
type Sink = (bytes: Uint8Array<ArrayBuffer>) => void | Promise<void>;
type Fetch = (piece: Piece, sink: Sink) => Promise<void>;
type Way = (url: URL) => Promise<{ fetch: Fetch; isAsync?: boolean }>;

export const RECEIVE_WAYS: Readonly<Record<string, Way>> = {
  "Deno.connect, write at once": rawClient,
  "Deno.connect, async write": async (url) => ({ ...await rawClient(url), isAsync: true }),
  "node:net onread": netClient,
  "fetch, BYOB": (url) => fetchClient(url, byobBody),
  "fetch, for await": (url) => fetchClient(url, iteratedBody),
  "fetch, arrayBuffer": (url) =>
    fetchClient(url, async (response, sink) => await sink(new Uint8Array(await response.arrayBuffer()))),
};

async function rawClient(url: URL): Promise<{ fetch: Fetch }> {
  const conn = await Deno.connect({ hostname: url.hostname, port: Number(url.port || 80) });
  conn.setNoDelay(true);
  const buffer = new Uint8Array(BUFFER_LENGTH);
  const fetch: Fetch = async (piece, sink) => {
    await conn.write(requestHead(url, piece));
    let filled = 0;
    let start = -1;
    while (start < 0) {
      filled += await conn.read(buffer.subarray(filled)) ?? 0;
      start = headEnd(buffer.subarray(0, filled));
    }
    let at = filled - start;
    if (at > 0) await sink(buffer.subarray(start, filled));
    while (at < piece.length) {
      const part = buffer.subarray(0, Math.min(buffer.length, piece.length - at));
      for (filled = 0; filled < part.length;) filled += await conn.read(part.subarray(filled)) ?? NaN;
      await sink(part);
      at += part.length;
    }
  };
  return { fetch };
}

function netClient(url: URL): Promise<{ fetch: Fetch }> {
  const buffer = new Uint8Array(BUFFER_LENGTH);
  let take: (bytes: Uint8Array<ArrayBuffer>) => void = () => {};
  const socket = connect({
    host: url.hostname,
    port: Number(url.port || 80),
    onread: {
      buffer,
      callback: (length: number) => {
        take(buffer.subarray(0, length));
        return true;
      },
    },
    // deno-lint-ignore no-explicit-any
  } as any);
  const fetch: Fetch = (piece, sink) =>
    new Promise((resolve) => {
      let at = -1;
      take = (bytes) => {
        const body = at < 0 ? bytes.subarray(headEnd(bytes)) : bytes;
        at = Math.max(at, 0) + body.length;
        if (body.length > 0) void sink(body);
        if (at === piece.length) resolve();
      };
      socket.write(requestHead(url, piece));
    });
  return new Promise((resolve) => socket.on("connect", () => resolve({ fetch })));
}

function fetchClient(url: URL, read: (response: Response, sink: Sink) => Promise<void>) {
  const get: Fetch = async (piece, sink) =>
    await read(await fetch(url, { headers: { range: rangeField(piece) } }), sink);
  return Promise.resolve({ fetch: get });
}

async function byobBody(response: Response, sink: Sink): Promise<void> {
  const reader = response.body!.getReader({ mode: "byob" });
  let memory = new ArrayBuffer(BUFFER_LENGTH);
  while (true) {
    const { value } = await reader.read(new Uint8Array(memory));
    if (value === undefined || value.length === 0) return;
    await sink(value);
    memory = value.buffer;
  }
}

async function iteratedBody(response: Response, sink: Sink): Promise<void> {
  for await (const chunk of response.body!) await sink(chunk);
}

function writer(path: string, isAsync: boolean): (bytes: Uint8Array, position: number) => void | Promise<void> {
  if (path === "-") return () => {};
  const file = openSync(path, "w");
  if (!isAsync) return (bytes, position) => void writeSync(file, bytes, 0, bytes.length, position);
  return (bytes, position) =>
    new Promise((resolve, reject) =>
      write(file, bytes, 0, bytes.length, position, (error) => error ? reject(error) : resolve())
    );
}

/** @returns one digest over all pieces' digests, empty without */
async function receive(url: URL, { way, digest, size, path }: {
  way: string;
  digest: DigestWay;
  size: number;
  path: string;
}): Promise<string> {
  const { fetch, isAsync = false } = await RECEIVE_WAYS[way]!(url);
  const store = writer(path, isAsync);
  using digests = digester(digest);
  const isDigestedOnTheWay = digest === "main" || digest === "worker";
  const all = createHash("sha256");
  for (const piece of piecesOf(size)) {
    let at = 0;
    await fetch(piece, (bytes) => {
      const position = piece.offset + at;
      at += bytes.length;
      if (isDigestedOnTheWay) digests.update(bytes);
      return store(bytes, position);
    });
    if (digest === "after") readBack(path, piece, digests.update);
    if (digest !== "none") all.update(await digests.finish());
  }
  return digest === "none" ? "" : all.digest("hex");
}

function readBack(path: string, { offset, length }: Piece, update: (bytes: Uint8Array<ArrayBuffer>) => void): void {
  const file = openSync(path, "r");
  const bytes = new Uint8Array(length);
  readSync(file, bytes, 0, length, offset);
  closeSync(file);
  update(bytes);
}

if (import.meta.main) {
  const [way = "", digest = "none", url = "", size = "0", path = "-"] = Deno.args;
  console.log("ready");
  await Deno.stdin.read(new Uint8Array(16));
  const found = await receive(new URL(url), { way, digest: digest as DigestWay, size: Number(size), path });
  console.log(`done ${found}`);
  await Deno.stdin.read(new Uint8Array(16));
  Deno.exit(0);
}
