import { assert, assertEquals } from "@std/assert";
import { transferTable, type WayResult } from "../../bench/transfer_bench.ts";
import { askedPiece, headEnd, PIECE_LENGTH, piecesOf, requestHead } from "../../bench/transfer_pieces.ts";

function result(way: string, changes: Partial<WayResult> = {}): WayResult {
  return { part: "send", way, digest: "", cpuSecondsPerGb: 0.5, rate: 2 ** 30, isRight: true, ...changes };
}

Deno.test("transferTable() gives each way as a multiple of nginx and of curl, and says what came wrong", () => {
  const text = transferTable([
    result("a way", { isRight: false }),
    result("nginx, sendfile", { cpuSecondsPerGb: 0.25, rate: 2 ** 31 }),
    result("another", { part: "receive", digest: "main", cpuSecondsPerGb: 1 }),
    result("curl", { part: "receive", digest: "none", cpuSecondsPerGb: 0.8 }),
  ]);
  assert(/a way +0\.50 +2\.00x +1\.0 GiB\/s +0\.50x +WRONG/.test(text), text);
  assert(/another +main +1\.00 +1\.25x +1\.0 GiB\/s +1\.00x +right/.test(text), text);
});

Deno.test("piecesOf() covers a size with a shorter last piece, and nothing has none", () => {
  assertEquals([...piecesOf(0)], []);
  assertEquals([...piecesOf(PIECE_LENGTH + 5)].at(-1), { offset: PIECE_LENGTH, length: 5 });
});

Deno.test("askedPiece() reads what requestHead() writes", () => {
  const piece = { offset: 4096, length: 17 };
  const head = requestHead(new URL("http://127.0.0.1:80/content"), piece);
  assertEquals(headEnd(head), head.length);
  assertEquals(askedPiece(head), piece);
  assertEquals(headEnd(head.subarray(0, head.length - 1)), -1);
});
