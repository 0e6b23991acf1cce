/**
 * One way of sending pieces of a file, as a process of its own:
 *   transfer_send.ts WAY FILE     prints `listening PORT`
 *
 * All read at a position from the page cache. A buffer is filled again only
 * when the runtime has let go of it; that is why `Deno.serve` needs a ring.
 */
import { openSync, read, readSync } from "node:fs";
import { createServer as createHttpServer, type ServerResponse } from "node:http";
import { createServer, type Socket } from "node:net";
import { askedPiece, BUFFER_LENGTH, type Piece, pieceOf, responseHead } from "./transfer_pieces.ts";

type Way = (path: string) => number | Promise<number>;

/** Fewer than 3 and the bytes get corrupted: the body is sent without a copy. */
const RING_LENGTH = 4;

export const SEND_WAYS: Readonly<Record<string, Way>> = {
  "Deno.listen, read at once": (path) => rawServer(path, syncReader),
  "Deno.listen, async read": (path) => rawServer(path, asyncReader),
  "node:net": netServer,
  "node:http": httpServer,
  "Deno.serve, ring of 4": (path) => denoServer(ringBodyOf(path)),
  "Deno.serve, Uint8Array": (path) => {
    const file = openSync(path, "r");
    return denoServer(({ offset, length }) => {
      const bytes = new Uint8Array(length);
      readSync(file, bytes, 0, length, offset);
      return bytes;
    });
  },
  "Deno.serve, file.readable": (path) => denoServer((piece) => fileBody(path, piece)),
};

type Read = (buffer: Uint8Array, offset: number) => number | Promise<number>;

function syncReader(file: number): Read {
  return (buffer, offset) => readSync(file, buffer, 0, buffer.length, offset);
}

function asyncReader(file: number): Read {
  return (buffer, offset) =>
    new Promise((resolve, reject) =>
      read(file, buffer, 0, buffer.length, offset, (error, count) => error ? reject(error) : resolve(count))
    );
}

function rawServer(path: string, makeReader: (file: number) => Read): number {
  const readAt = makeReader(openSync(path, "r"));
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const serve = async (conn: Deno.TcpConn) => {
    conn.setNoDelay(true);
    const buffer = new Uint8Array(BUFFER_LENGTH);
    const request = new Uint8Array(4096);
    for (let count = await conn.read(request); count !== null; count = await conn.read(request)) {
      const piece = askedPiece(request.subarray(0, count));
      const head = responseHead(piece);
      buffer.set(head);
      let headLength = head.length;
      for (let at = 0; at < piece.length;) {
        const room = Math.min(buffer.length - headLength, piece.length - at);
        const filled = readAt(buffer.subarray(headLength, headLength + room), piece.offset + at);
        const length = typeof filled === "number" ? filled : await filled;
        const end = headLength + length;
        for (let sent = 0; sent < end;) sent += await conn.write(buffer.subarray(sent, end));
        at += length;
        headLength = 0;
      }
    }
    conn.close();
  };
  (async () => {
    for await (const conn of listener) void serve(conn);
  })();
  return listener.addr.port;
}

function netServer(path: string): Promise<number> {
  const file = openSync(path, "r");
  const serve = async (socket: Socket, piece: Piece, buffer: Uint8Array) => {
    socket.write(responseHead(piece));
    for (let at = 0; at < piece.length;) {
      const part = buffer.subarray(0, Math.min(buffer.length, piece.length - at));
      at += readSync(file, part, 0, part.length, piece.offset + at);
      await new Promise<void>((resolve) => socket.write(part, () => resolve()));
    }
  };
  const server = createServer((socket) => {
    const buffer = new Uint8Array(BUFFER_LENGTH);
    socket.setNoDelay(true);
    socket.on("data", (bytes: Uint8Array) => void serve(socket, askedPiece(bytes), buffer));
    socket.on("error", () => {});
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(portOf(server.address()))));
}

function httpServer(path: string): Promise<number> {
  const file = openSync(path, "r");
  const serve = async (response: ServerResponse, piece: Piece) => {
    const buffer = new Uint8Array(BUFFER_LENGTH);
    response.writeHead(206, { "content-length": piece.length });
    for (let at = 0; at < piece.length;) {
      const part = buffer.subarray(0, Math.min(buffer.length, piece.length - at));
      at += readSync(file, part, 0, part.length, piece.offset + at);
      await new Promise<void>((resolve) => response.write(part, () => resolve()));
    }
    response.end();
  };
  const server = createHttpServer((request, response) => void serve(response, pieceOf(request.headers.range)));
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(portOf(server.address()))));
}

function portOf(address: string | { port: number } | null): number {
  return typeof address === "object" && address !== null ? address.port : 0;
}

function denoServer(bodyOf: (piece: Piece) => BodyInit | Promise<BodyInit>): number {
  const { addr } = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    const piece = pieceOf(request.headers.get("range"));
    return new Response(await bodyOf(piece), { status: 206, headers: { "content-length": String(piece.length) } });
  });
  return addr.port;
}

function ringBodyOf(path: string): (piece: Piece) => ReadableStream<Uint8Array<ArrayBuffer>> {
  const file = openSync(path, "r");
  return (piece) => ringBody(file, piece);
}

function ringBody(file: number, { offset, length }: Piece): ReadableStream<Uint8Array<ArrayBuffer>> {
  const ring = Array.from({ length: RING_LENGTH }, () => new Uint8Array(BUFFER_LENGTH));
  let turn = 0;
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      const buffer = ring[turn++ % RING_LENGTH]!;
      const part = buffer.subarray(0, Math.min(buffer.length, length - at));
      at += readSync(file, part, 0, part.length, offset + at);
      controller.enqueue(part);
      if (at === length) controller.close();
    },
  }, { highWaterMark: 0 });
}

async function fileBody(path: string, { offset, length }: Piece): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
  const file = await Deno.open(path);
  await file.seek(offset, Deno.SeekMode.Start);
  let left = length;
  const end = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      controller.enqueue(chunk.subarray(0, left));
      left -= Math.min(left, chunk.length);
      if (left === 0) controller.terminate();
    },
  });
  return file.readable.pipeThrough(end);
}

if (import.meta.main) {
  const [way = "", path = ""] = Deno.args;
  console.log(`listening ${await SEND_WAYS[way]!(path)}`);
}
