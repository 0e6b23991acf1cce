import { assertEquals } from "@std/assert";
import { PieceEvents } from "../../../../peer/task/piece_events.ts";

Deno.test("a listener hears the pieces of its own task and generation only", () => {
  const events = new PieceEvents();
  const heard: (number | null)[] = [];
  events.watch("task", "g1", (piece) => heard.push(piece));
  events.held("task", "g1", 3);
  events.held("task", "g2", 4);
  events.held("other", "g1", 5);
  events.gone("task", "g2");
  events.gone("other", "g1");
  events.held("task", "g1", 0);
  assertEquals(heard, [3, 0]);
  events.gone("task", "g1");
  assertEquals(heard, [3, 0, null]);
});

Deno.test("each of several listeners hears a piece, until it stops", () => {
  const events = new PieceEvents();
  const [one, two]: (number | null)[][] = [[], []];
  const stopOne = events.watch("t", "g", (piece) => one!.push(piece));
  const stopTwo = events.watch("t", "g", (piece) => two!.push(piece));
  events.held("t", "g", 1);
  stopOne();
  stopOne();
  events.held("t", "g", 2);
  stopTwo();
  events.held("t", "g", 3);
  events.gone("t", "g");
  assertEquals([one, two], [[1], [1, 2]]);
  // One that comes after the last has left hears again.
  const late: (number | null)[] = [];
  events.watch("t", "g", (piece) => late.push(piece));
  stopTwo();
  events.held("t", "g", 4);
  assertEquals(late, [4]);
});

Deno.test("a listener that stops itself, or others, while it hears does not hinder the rest", () => {
  const events = new PieceEvents();
  const heard: string[] = [];
  const stop = events.watch("t", "g", () => {
    heard.push("first");
    stop();
  });
  events.watch("t", "g", (piece) => heard.push(`second ${piece}`));
  events.gone("t", "g");
  events.held("t", "g", 1);
  assertEquals(heard, ["first", "second null", "second 1"]);
});

Deno.test("whoever asks hears of each generation that begins", () => {
  const events = new PieceEvents();
  const opened: string[] = [];
  events.opened("early", "g");
  events.onOpened((task, generation) => opened.push(`${task}/${generation}`));
  events.onOpened((task) => opened.push(task));
  events.opened("t", "g1");
  events.opened("t", "g1");
  assertEquals(opened, ["t/g1", "t", "t/g1", "t"]);
});

Deno.test("PieceEvents knows what neighbours have as long as somebody can tell", () => {
  const events = new PieceEvents();
  const known = { hostId: "host-1", piece: 3 };
  assertEquals(events.isKnownTo("t", "g", known), false);
  const forgetOld = events.knows("t", "g", () => false);
  const forget = events.knows("t", "g", (hostId, piece) => hostId === "host-1" && piece === 3);
  forgetOld();
  assertEquals(events.isKnownTo("t", "g", known), true);
  assertEquals(events.isKnownTo("t", "g", { hostId: "host-2", piece: 3 }), false);
  assertEquals(events.isKnownTo("t", "other", known), false);
  forget();
  assertEquals(events.isKnownTo("t", "g", known), false);
});
