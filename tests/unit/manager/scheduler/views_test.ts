/** What the API shows of a scheduler's tasks. */
import { assertEquals } from "@std/assert";
import { taskViews } from "../../../../manager/scheduler/views.ts";
import { metaOf, SPEC, World } from "./world.ts";

Deno.test("a URL's signature is not shown to who lists tasks", () => {
  const url = `${SPEC.url}?x=1&Expires=9&Signature=s3cret`;
  const world = new World().held("h", metaOf(4), { url });
  const [view] = taskViews(1, world.scheduler);
  assertEquals([view?.url, view?.hosts.length], [`${SPEC.url}?x=1&Expires=***&Signature=***`, 1]);
});
