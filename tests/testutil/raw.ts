/** Bytes that are no message of anybody's protocol, and a way to send them. */
import { seededRandom } from "../../peer/core/clock.ts";

type Place = { hostname: string; port: number } | { transport: "unix"; path: string };

const text = (value: string) => new TextEncoder().encode(value);

/** Rubbish, half requests and endless lines for a server of lines or of HTTP. */
export function rubbish(): Uint8Array[] {
  const random = seededRandom(7);
  return [
    new Uint8Array(0),
    new Uint8Array(100_000).map(() => random() * 256),
    new Uint8Array(10),
    text("\n\n\n\r\n\r\n"),
    text("GET / HTTP/1.1\r\n"),
    text("GET / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\nhalf"),
    text("POST /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
    text("GET / HTTP/9.9\r\n\r\n"),
    text("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    text('{"type":"status"'),
    text('{"type":"status","v":99}\n'),
    text("null\n[]\n7\n"),
    text(`GET /${"x".repeat(100_000)} HTTP/1.1\r\n\r\n`),
    text(`GET / HTTP/1.1\r\n${"a: b\r\n".repeat(10_000)}\r\n`),
    text("x".repeat(10 * 1024 * 1024)),
    text("[".repeat(900_000) + "\n"),
    text(`{"type":"download","v":1,"url":"${"x".repeat(10 * 1024 * 1024)}"}\n`),
  ];
}

/**
 * Sends bytes twice: once hanging up at once, once leaving the connection open.
 *
 * @returns the connections that are still open, for the caller to close
 */
export async function sendRaw(place: Place, bytes: Uint8Array): Promise<Deno.Conn[]> {
  const open: Deno.Conn[] = [];
  for (const hangsUp of [true, false]) {
    const conn = "path" in place ? await Deno.connect(place) : await Deno.connect(place);
    await writeAll(conn, bytes);
    if (hangsUp) conn.close();
    else open.push(conn);
  }
  return open;
}

/** A server may hang up in the middle, or stop to read. */
async function writeAll(conn: Deno.Conn, bytes: Uint8Array): Promise<void> {
  const stuck = Promise.withResolvers<void>();
  const timer = setTimeout(() => stuck.resolve(), STUCK_MS);
  const writing = (async () => {
    for (let at = 0; at < bytes.length;) at += await conn.write(bytes.subarray(at));
  })().catch(() => {});
  await Promise.race([writing, stuck.promise]);
  clearTimeout(timer);
}

const STUCK_MS = 2_000;
