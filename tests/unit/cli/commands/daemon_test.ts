import { assertEquals, assertThrows } from "@std/assert";
import { daemonFlags } from "../../../../cli/commands/daemon.ts";
import { parseCommand } from "../../../../cli/parse.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";

const read = (...args: string[]) => daemonFlags(parseCommand(["daemon", ...args]));

Deno.test("daemonFlags() hands on what the daemon reads", () => {
  assertEquals(read("--limit", "5M", "--verbose", "--console=false", "--pprof-port=-1", "--config", "a b"), {
    args: ["--config=a b", "--verbose", "--pprof-port=-1", "--limit=5M"].sort(order),
    idle: [],
  });
  assertEquals(read(), { args: [], idle: [] });
});

Deno.test("daemonFlags() names those of a download, which a daemon takes and does nothing with", () => {
  const { args, idle } = read("-u", "http://a/", "-O", "/x", "-H", "A: b", "-H", "C: d", "--tag", "t", "--verbose");
  assertEquals([args, idle.sort()], [["--verbose"], ["--header", "--output", "--tag", "--url"]]);
});

for (const args of [["--tag", "t", "--digest", "md5:0"], ["--show-progress", "--console"], ["--list"]]) {
  Deno.test(`daemon ${args.join(" ")} contradicts itself, as with a download`, () => {
    assertEquals(assertThrows(() => read(...args), LacewingError).code, "usage");
  });
}

/** The order of the table. */
function order(a: string, b: string): number {
  const place = (flag: string) =>
    ["--limit", "--config", "--verbose", "--pprof-port"].findIndex((it) => flag.startsWith(it));
  return place(a) - place(b);
}
