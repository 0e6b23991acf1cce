// What BitTorrent needs beside us: tests/bench/torrent.ts, tests/bench/tracker.ts
import { assert, assertEquals, assertThrows } from "@std/assert";
import { createHash } from "node:crypto";
import { bencode, makeTorrent } from "../../bench/torrent.ts";
import { compact, Tracker } from "../../bench/tracker.ts";

const text = (bytes: Uint8Array) => new TextDecoder("latin1").decode(bytes);

const ENCODED: [Parameters<typeof bencode>[0], string][] = [
  [42, "i42e"],
  [-3, "i-3e"],
  ["spam", "4:spam"],
  ["", "0:"],
  ["é", "2:\u00c3\u00a9"],
  [new Uint8Array([0, 255]), "2:\u0000\u00ff"],
  [["a", 1], "l1:ai1ee"],
  [{ b: 1, a: [] }, "d1:ale1:bi1ee"],
];
for (const [value, expected] of ENCODED) {
  Deno.test(`bencode() of ${JSON.stringify(value)}`, () => assertEquals(text(bencode(value)), expected));
}

for (const value of [1.5, NaN, 2 ** 60]) {
  Deno.test(`bencode() refuses ${value}`, () => {
    assertThrows(() => bencode(value), RangeError);
  });
}

Deno.test("makeTorrent() digests pieces across the borders of files", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${folder}/a`, "hello ");
    await Deno.writeTextFile(`${folder}/b`, "world");
    const files = [{ name: "a", size: 6 }, { name: "b", size: 5 }];
    const torrent = text(await makeTorrent("both", { folder, files, announce: "http://t/", pieceLength: 8 }));
    const digests = ["hello wo", "rld"].map((piece) => text(createHash("sha1").update(piece).digest()));
    assert(torrent.includes(`6:pieces40:${digests.join("")}`));
    assert(torrent.includes("12:piece lengthi8e"));
    const single = text(await makeTorrent("x", { folder, files: [files[0]!], announce: "http://t/", pieceLength: 8 }));
    assert(single.includes("6:lengthi6e4:name1:a"));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("compact() writes address and port in six bytes", () => {
  assertEquals([...compact([{ ip: "10.0.0.7", port: 6881, left: 0 }])], [10, 0, 0, 7, 0x1a, 0xe1]);
});

const announce = (query: string) => new Request(`http://tracker/announce?${query}`);

Deno.test("Tracker names the others to each client, and forgets one that stops", async () => {
  const tracker = new Tracker();
  tracker.answer(announce("port=1000&left=0"), "10.0.0.1");
  const second = text(new Uint8Array(await tracker.answer(announce("port=1001&left=5"), "10.0.0.2").arrayBuffer()));
  assert(second.includes("5:peers6:"));
  tracker.answer(announce("port=1000&left=0&event=stopped"), "10.0.0.1");
  assertEquals(tracker.peers, [{ ip: "10.0.0.2", port: 1001, left: 5 }]);
});

for (const query of ["left=0", "port=0&left=0", "port=70000&left=0", "port=1&left=x", "port=1"]) {
  Deno.test(`Tracker refuses an announce with ${query}`, async () => {
    const tracker = new Tracker();
    assert((await tracker.answer(announce(query), "10.0.0.1").text()).includes("failure reason"));
    assertEquals(tracker.peers, []);
  });
}
