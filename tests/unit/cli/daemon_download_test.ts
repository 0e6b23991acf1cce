/** A download over the daemon's socket, with an invented daemon. */
import { assertEquals, assertRejects } from "@std/assert";
import { sha256Hex } from "../../../peer/core/digest.ts";
import { LacewingError } from "../../../peer/core/errors.ts";
import type { DownloadStats } from "../../../peer/core/wire/ipc.ts";
import type { DaemonConnection, DownloadOrder } from "../../../peer/ipc/client.ts";
import { downloadByDaemon, orderOf } from "../../../cli/daemon_download.ts";
import { Delivery } from "../../../cli/delivery.ts";
import { OutputFile } from "../../../cli/output_file.ts";
import { parseCommand } from "../../../cli/parse.ts";
import { type DownloadSettings, readDownloadSettings } from "../../../cli/settings.ts";

const TEXT = "0123456789";

function settingsOf(...args: string[]): DownloadSettings {
  return readDownloadSettings(parseCommand(["http://o.test/f", ...args]), () => undefined);
}

function statsOf(offset: number, length: number, verified: string | null): DownloadStats {
  return {
    task_id: "t",
    content_length: TEXT.length,
    offset,
    length,
    from_local: length,
    from_peers: 0,
    from_source: 0,
    peers: 0,
    verified,
    parents: [],
  };
}

/** A daemon that has the content in a file, which the client may be unable to read. */
function inventDaemon(
  path: string,
  part: { offset: number; length: number },
): DaemonConnection & { orders: DownloadOrder[]; sent: boolean } {
  const bytes = new TextEncoder().encode(TEXT.slice(part.offset, part.offset + part.length));
  const orders: DownloadOrder[] = [];
  const daemon = {
    orders,
    sent: false,
    status: () => Promise.reject(new Error("not asked")),
    explain: () => Promise.reject(new Error("not asked")),
    download(order: DownloadOrder) {
      orders.push(order);
      return Promise.resolve({
        path,
        stats: statsOf(part.offset, part.length, order.digest ?? null),
        async *send() {
          daemon.sent = true;
          yield await Promise.resolve(bytes);
        },
      });
    },
    stream: () => {
      throw new Error("not asked");
    },
    [Symbol.dispose]: () => {},
  };
  return daemon;
}

async function run(
  args: string[],
  { part = { offset: 0, length: 10 }, readable = true }: {
    part?: { offset: number; length: number };
    readable?: boolean;
  } = {},
) {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${folder}/store`, TEXT);
    const settings = settingsOf(...args);
    const { signal } = new AbortController();
    using output = await OutputFile.prepare(`${folder}/out`);
    const delivery = new Delivery({ output, digest: settings.digest, signal });
    const daemon = inventDaemon(readable ? `${folder}/store` : `${folder}/none`, part);
    const stats = await downloadByDaemon(daemon, { settings, delivery, signal, onProgress: () => {} });
    const isLink = (await Deno.stat(`${folder}/out`)).ino === (await Deno.stat(`${folder}/store`)).ino;
    return {
      text: await Deno.readTextFile(`${folder}/out`),
      stats,
      sent: daemon.sent,
      isLink,
      order: daemon.orders[0],
    };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("orderOf() sends what the daemon must know", () => {
  const args = [
    "-H",
    "A: b",
    "--filter",
    "x&y",
    "--tag",
    "blue",
    "--disable-back-source",
    "--ratelimit",
    "1K",
    "--range",
    "-5",
  ];
  assertEquals(orderOf(settingsOf(...args)), {
    url: "http://o.test/f",
    headers: [["A", "b"]],
    filter: "x&y",
    tag: "blue",
    digest: null,
    range: "-5",
    disable_back_source: true,
    rate_limit: 1024,
  });
});

Deno.test("a whole content becomes a link of the daemon's file", async () => {
  const { text, sent, isLink } = await run([]);
  assertEquals({ text, sent, isLink }, { text: TEXT, sent: false, isLink: true });
});

Deno.test("a content that this user cannot read comes as bytes", async () => {
  const { text, sent, isLink } = await run([], { readable: false });
  assertEquals({ text, sent, isLink }, { text: TEXT, sent: true, isLink: false });
});

for (const readable of [true, false]) {
  const how = readable ? "copied from the daemon's file" : "sent";
  Deno.test(`a range is ${how}, and its digest is checked here`, async () => {
    const digest = `sha256:${sha256Hex("234")}`;
    const part = { offset: 2, length: 3 };
    const { text, isLink, stats, order } = await run(["--range", "2-4", "--digest", digest], { part, readable });
    assertEquals([text, isLink, stats.verified, order?.digest], ["234", false, digest, null]);
    const wrong = ["--range", "2-4", "--digest", `sha256:${sha256Hex(TEXT)}`];
    const error = await assertRejects(() => run(wrong, { part, readable }), LacewingError);
    assertEquals(error.code, "digest_mismatch");
  });
}

Deno.test("the digest of a whole content is the daemon's to check", async () => {
  const digest = `sha256:${sha256Hex(TEXT)}`;
  const { order, stats } = await run(["--digest", digest]);
  assertEquals([order?.digest, stats.verified], [digest, digest]);
});

Deno.test("a daemon's file of another length gets no name", async () => {
  const error = await assertRejects(() => run([], { part: { offset: 0, length: 9 } }), LacewingError, "9 B are wanted");
  assertEquals(error.code, "file");
});
