import { assertEquals } from "@std/assert";
import { Ledger, type LedgerEvents, type PieceOrigin, type Verdict } from "../../../../peer/task/ledger.ts";
import { PiecePicker } from "../../../../peer/task/piece_picker.ts";
import { storedContent } from "./stored_content.ts";

const SOURCE: PieceOrigin = { kind: "source" };
const RIGHT = "a".repeat(64);
const OTHER = "b".repeat(64);
const from = (hostId: string): PieceOrigin => ({ kind: "peer", hostId });

async function ledgerWith({ held = [] }: { held?: number[] } = {}) {
  const content = await storedContent({ size: 3 * 16 + 1, held });
  const picker = new PiecePicker({ pieceCount: 4, random: () => 0 });
  picker.want(0, 4);
  const heard: string[] = [];
  const events: LedgerEvents = {
    onHeld: (number, origin) => heard.push(`held ${number} ${origin.kind === "peer" ? origin.hostId : "source"}`),
    onWrong: (number, hostId) => heard.push(`wrong ${number} ${hostId}`),
  };
  const ledger = new Ledger(content.task, content.meta, picker, events);
  return { ledger, picker, heard, ...content };
}

interface Row {
  what: string;
  /** The digest that the scheduler gave before. */
  known?: string;
  alone?: boolean;
  sha256: string;
  origin: PieceOrigin;
  verdict: Verdict;
  /** Whether the piece is valid on disk then. */
  held: boolean;
}

const ROWS: Row[] = [
  { what: "from the source, unknown", sha256: RIGHT, origin: SOURCE, verdict: "held", held: true },
  { what: "from the source, as known", known: RIGHT, sha256: RIGHT, origin: SOURCE, verdict: "held", held: true },
  { what: "from the source, not as known", known: RIGHT, sha256: OTHER, origin: SOURCE, verdict: "wrong", held: false },
  { what: "from the source, alone", alone: true, sha256: RIGHT, origin: SOURCE, verdict: "held", held: true },
  { what: "from a peer, unknown", sha256: RIGHT, origin: from("p"), verdict: "waiting", held: false },
  { what: "from a peer, as known", known: RIGHT, sha256: RIGHT, origin: from("p"), verdict: "held", held: true },
  { what: "from a peer, not as known", known: RIGHT, sha256: OTHER, origin: from("p"), verdict: "wrong", held: false },
  { what: "from a peer, alone", alone: true, sha256: RIGHT, origin: from("p"), verdict: "useless", held: false },
  {
    what: "from a peer, alone, as known",
    alone: true,
    known: RIGHT,
    sha256: RIGHT,
    origin: from("p"),
    verdict: "held",
    held: true,
  },
];
for (const { what, known, alone = false, sha256, origin, verdict, held } of ROWS) {
  Deno.test(`a piece ${what}: ${verdict}`, async () => {
    const { ledger, picker, task, heard } = await ledgerWith();
    if (known !== undefined) ledger.learn([[1, known]]);
    ledger.setKnownOnly(alone);
    assertEquals(ledger.accept(1, sha256, origin), verdict);
    assertEquals([task.pieces.has(1), picker.isHeld(1)], [held, held]);
    assertEquals(task.digestOf(1), held ? sha256 : null);
    assertEquals(heard, held ? [`held 1 ${origin.kind === "peer" ? origin.hostId : "source"}`] : []);
    assertEquals(picker.idlePieces(4), held || verdict === "waiting" ? [0, 2, 3] : [0, 1, 2, 3]);
  });
}

Deno.test("a piece that is held already is judged by its digest, and counted once", async () => {
  const { ledger, sha256, heard } = await ledgerWith({ held: [1] });
  assertEquals(ledger.accept(1, sha256(1), from("p")), "held");
  assertEquals(ledger.accept(1, sha256(1), SOURCE), "held");
  assertEquals(ledger.accept(1, OTHER, from("p")), "wrong");
  assertEquals(ledger.accept(1, OTHER, SOURCE), "wrong");
  assertEquals([heard, ledger.digestOf(1)], [[], sha256(1)]);
});

Deno.test("bytes that wait are judged when their digest comes", async () => {
  const { ledger, picker, heard, task } = await ledgerWith();
  ledger.accept(0, RIGHT, from("honest"));
  ledger.accept(1, OTHER, from("liar"));
  assertEquals(picker.idlePieces(4), [2, 3], "what waits is not asked for again");
  assertEquals(ledger.learn([[0, RIGHT], [1, RIGHT]]), []);
  assertEquals(heard, ["held 0 honest", "wrong 1 liar"]);
  assertEquals([...task.pieces], [0]);
  assertEquals(picker.idlePieces(4), [1, 2, 3], "the wrong one is missing again");
});

Deno.test("bytes that wait are given up when nobody will tell their digest", async () => {
  const { ledger, picker, heard, task } = await ledgerWith();
  ledger.accept(0, RIGHT, from("p"));
  ledger.setKnownOnly(true);
  assertEquals(picker.idlePieces(4), [0, 1, 2, 3]);
  // Others may have been written over them since.
  ledger.learn([[0, RIGHT]]);
  assertEquals([heard, [...task.pieces]], [[], []]);
});

Deno.test("a piece that waits and is then read from the source counts as the source's", async () => {
  const { ledger, heard } = await ledgerWith();
  ledger.accept(0, OTHER, from("p"));
  assertEquals(ledger.accept(0, RIGHT, SOURCE), "held");
  ledger.learn([[0, RIGHT]]);
  assertEquals(heard, ["held 0 source"]);
});

Deno.test("learn() names the pieces on disk that have another digest, and keeps the first one told", async () => {
  const { ledger, sha256 } = await ledgerWith({ held: [0, 2] });
  assertEquals(ledger.learn([[0, sha256(0)], [2, OTHER], [1, RIGHT]]), [2]);
  assertEquals(ledger.learn([[1, OTHER]]), [1]);
  assertEquals([ledger.digestOf(1), ledger.digestOf(2)], [RIGHT, sha256(2)]);
});

Deno.test("learn() passes over pieces that the content does not have", async () => {
  const { ledger } = await ledgerWith();
  assertEquals(ledger.learn([[4, RIGHT], [1_000_000, RIGHT]]), []);
  assertEquals(ledger.digestOf(4), undefined);
});

Deno.test("a ledger begins with what is on disk, and is complete with the last piece", async () => {
  const { ledger, picker, sha256, piece, task } = await ledgerWith({ held: [0, 1, 3] });
  assertEquals([picker.heldCount, ledger.isComplete, ledger.digestOf(3)], [3, false, sha256(3)]);
  await task.write(piece(2), 32);
  ledger.accept(2, sha256(2), SOURCE);
  assertEquals([picker.heldCount, ledger.isComplete], [4, true]);
});
