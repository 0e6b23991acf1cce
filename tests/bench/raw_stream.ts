/**
 * Both ends of one raw TCP stream, for calibrating a link:
 *   raw_stream.ts receive ADDRESS PORT MS   prints `listening`, then bytes per second once the stream runs evenly
 *   raw_stream.ts send ADDRESS PORT
 * Imports nothing, so that it starts at once.
 */

/** Left out at the beginning: slow start, and what the burst lets through. */
const WARM_UP_MS = 500;

const [role, hostname = "", portText = "", msText = ""] = Deno.args;
const port = Number(portText);

async function receive(ms: number): Promise<void> {
  using listener = Deno.listen({ hostname, port });
  console.log("listening");
  using conn = await listener.accept();
  const buffer = new Uint8Array(1024 * 1024);
  const startMs = performance.now();
  let fromMs = 0;
  let bytes = 0;
  while (true) {
    const read = await conn.read(buffer);
    if (read === null) throw new Error("the stream ended too early");
    const nowMs = performance.now();
    if (fromMs === 0) {
      if (nowMs - startMs >= WARM_UP_MS) fromMs = nowMs;
      continue;
    }
    bytes += read;
    if (nowMs - fromMs >= ms) return console.log(`rate ${Math.round(bytes / (nowMs - fromMs) * 1000)}`);
  }
}

async function send(): Promise<void> {
  using conn = await Deno.connect({ hostname, port });
  const bytes = new Uint8Array(256 * 1024);
  while (true) await conn.write(bytes);
}

if (role === "receive") await receive(Number(msText));
// The receiver hangs up when it knows enough.
else await send().catch(() => {});
