/**
 * A daemon whose Unix socket, upload port and health port are fed with rubbish,
 * half requests and endless lines: it serves its client and its neighbours on.
 */
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { formatBytes } from "../../peer/core/units.ts";
import { LINE_LENGTH_MAX } from "../../peer/core/wire/json_lines.ts";
import { connectDaemon } from "../../peer/ipc/client.ts";
import { assertDownloaded, startCluster } from "../testutil/cluster.ts";
import { startOrigin } from "../testutil/origin.ts";
import { rubbish, sendRaw } from "../testutil/raw.ts";

const SIZE = 2_000_003;
/** More than a daemon may take for each byte that others push at it. */
const RSS_MAX = 400 * 1024 * 1024;

function placeOf(address: string): { hostname: string; port: number } {
  const { hostname, port } = new URL(`http://${address}`);
  return { hostname, port: Number(port) };
}

Deno.test("a daemon outlives rubbish on its socket and ports, and serves client and neighbour on", async () => {
  await using origin = startOrigin();
  await using cluster = await startCluster({ daemons: 2 });
  const [daemon, neighbour] = cluster.daemons;
  const before = daemon!.rssBytes();
  const places = [
    { transport: "unix", path: daemon!.socket } as const,
    placeOf(daemon!.upload),
    placeOf(daemon!.health ?? ""),
  ];
  const open: Deno.Conn[] = [];
  for (const place of places) {
    for (const bytes of rubbish()) open.push(...await sendRaw(place, bytes));
  }
  const url = origin.put("/f", { size: SIZE });
  const digest = origin.digest("/f");
  await assertDownloaded(await daemon!.client(url, "-O", daemon!.out()), daemon!.out(), digest);
  origin.put("/f", { status: 500 });
  // The neighbour can have it from nobody else.
  const result = await neighbour!.client(url, "-O", neighbour!.out(), "--disable-back-source");
  await assertDownloaded(result, neighbour!.out(), digest);
  assertEquals((await fetch(`http://${daemon!.health}/healthz`).then(async (r) => [r.status, await r.text()]))[0], 200);
  for (const conn of open) conn.close();
  using connection = await connectDaemon(daemon!.socket);
  assertEquals((await connection.status()).host_id, daemon!.hostId);
  assertEquals(daemon!.log().split("\n").filter((line) => line.includes('"level":"error"')), []);
  const after = daemon!.rssBytes();
  console.log(`daemon after rubbish: RSS ${formatBytes(after)}, ${formatBytes(before)} before`);
  assert(after < RSS_MAX);
});

interface Reply {
  type: string;
  error?: { code: string; message: string };
}

/** One line on the socket, and the last line of the answer. */
async function ask(path: string, line: string): Promise<Reply> {
  using conn = await Deno.connect({ transport: "unix", path });
  const bytes = new TextEncoder().encode(line);
  const writing = (async () => {
    for (let at = 0; at < bytes.length;) at += await conn.write(bytes.subarray(at));
  })().catch(() => {});
  const buffer = new Uint8Array(64 * 1024);
  let text = "";
  while (!/"type":"(error|done)".*\n/.test(text)) {
    const read = await conn.read(buffer);
    if (read === null) break;
    text += new TextDecoder().decode(buffer.subarray(0, read));
  }
  await writing;
  return JSON.parse(text.trimEnd().split("\n").at(-1)!);
}

const DOWNLOAD = { type: "download", v: 1, url: "http://127.0.0.1:9/f" };
const WRONG_LINES: [claim: string, line: string | object, code: string, word: string][] = [
  ["not JSON", "hello\n", "protocol", "JSON"],
  ["a line of 2 MiB", "x".repeat(2 * LINE_LENGTH_MAX) + "\n", "protocol", String(LINE_LENGTH_MAX)],
  ["another version", { type: "status", v: 2 }, "protocol", "version 2"],
  ["no version", { type: "status" }, "protocol", "version"],
  ["an unknown type", { type: "stop", v: 1 }, "protocol", "type"],
  ["no url", { type: "download", v: 1 }, "usage", "url"],
  ["an empty url", { ...DOWNLOAD, url: "" }, "usage", "url"],
  ["a url that is none", { ...DOWNLOAD, url: "nonsense" }, "usage", "nonsense"],
  ["a file of this host", { ...DOWNLOAD, url: "file:///etc/passwd" }, "usage", "file"],
  ["an unknown scheme", { ...DOWNLOAD, url: "gopher://h/x" }, "usage", "gopher"],
  ["headers that are no pairs", { ...DOWNLOAD, headers: { a: "b" } }, "usage", "headers"],
  ["a header of two lines", { ...DOWNLOAD, headers: [["a", "b\r\nc: d"]] }, "usage", "a"],
  ["too many headers", { ...DOWNLOAD, headers: Array(101).fill(["a", "b"]) }, "usage", "headers"],
  ["a rate below zero", { ...DOWNLOAD, rate_limit: -1 }, "usage", "rate_limit"],
  ["a delivery that is none", { ...DOWNLOAD, delivery: "post" }, "usage", "delivery"],
  ["a digest that is none", { ...DOWNLOAD, digest: "crc32:00" }, "usage", "crc32"],
  ["a range that is none", { ...DOWNLOAD, range: "9-0" }, "usage", "9-0"],
];

Deno.test("a wrong line on the daemon's socket is answered with what is wrong", async (test) => {
  await using cluster = await startCluster({ daemons: 1 });
  const [daemon] = cluster.daemons;
  for (const [claim, line, code, word] of WRONG_LINES) {
    await test.step(claim, async () => {
      const { type, error } = await ask(daemon!.socket, typeof line === "string" ? line : `${JSON.stringify(line)}\n`);
      assertEquals([type, error?.code], ["error", code], error?.message);
      assertStringIncludes(error!.message, word);
    });
  }
  assertEquals(daemon!.log().split("\n").filter((line) => line.includes('"level":"error"')), []);
});
