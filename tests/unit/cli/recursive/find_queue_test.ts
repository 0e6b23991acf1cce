import { assertEquals, assertRejects } from "@std/assert";
import { FindQueue } from "../../../../cli/recursive/find_queue.ts";

Deno.test("takers get all in order, also those who came first, and then the end", async () => {
  const queue = new FindQueue<number>(10);
  const early = [queue.take(), queue.take()];
  for (const item of [1, 2, 3]) await queue.put(item);
  queue.close();
  assertEquals(await Promise.all(early), [1, 2]);
  assertEquals([await queue.take(), await queue.take(), await queue.take()], [3, undefined, undefined]);
});

Deno.test("the giver waits when the queue is full", async () => {
  const queue = new FindQueue<number>(2);
  await queue.put(1);
  let hasRoom = false;
  const full = queue.put(2).then(() => hasRoom = true);
  await Promise.resolve();
  assertEquals([hasRoom, queue.count, queue.isClosed], [false, 2, false]);
  assertEquals(await queue.take(), 1);
  await full;
  queue.close();
});

Deno.test("takers hear of the error that the giver ended with, after all it gave", async () => {
  const queue = new FindQueue<number>(5);
  const waiting = queue.take();
  await queue.put(1);
  await queue.put(2);
  queue.close(new Error("broken"));
  assertEquals([await waiting, await queue.take()], [1, 2]);
  await assertRejects(() => queue.take(), Error, "broken");
});

Deno.test("closing lets a waiting giver and waiting takers go", async () => {
  const queue = new FindQueue<number>(1);
  const giving = queue.put(1);
  queue.close();
  await giving;
  const empty = new FindQueue<number>(1);
  const taking = empty.take();
  empty.close();
  assertEquals(await taking, undefined);
});
