/** From failures to exit codes and lines. */
import { assert, assertEquals } from "@std/assert";
import { type ErrorCode, ERRORS, LacewingError } from "../../../peer/core/errors.ts";
import { explain, Interrupted } from "../../../cli/failure.ts";
import { NotKnown } from "../../../cli/parse.ts";

const CODES: [ErrorCode, number][] = [
  ["unknown", 1],
  ["usage", 2],
  ["config_invalid", 2],
  ["source_not_found", 3],
  ["source_refused", 4],
  ["network", 5],
  ["no_holder", 5],
  ["timeout", 6],
  ["tls", 7],
  ["source_failed", 8],
  ["disk_full", 9],
  ["file", 11],
  ["digest_mismatch", 12],
  ["range_not_satisfiable", 13],
  ["content_changed", 13],
  ["no_daemon", 14],
  ["policy", 15],
];
for (const [code, exitCode] of CODES) {
  Deno.test(`explain() gives exit code ${exitCode} to ${code}`, async () => {
    const failure = await explain(new LacewingError(code, "Cannot do it: because"));
    assertEquals(failure.exitCode, exitCode);
    assert(failure.line?.startsWith("lacewing: Cannot do it: because"));
  });
}

Deno.test("explain() has one line for every error code, without control characters or secrets", async () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    const text = "Cannot read http://u:pw@h/x?sig=SECRET\r\n\x1b[31mred\u202e\x9b";
    const { line } = await explain(new LacewingError(code, text));
    assert(/^[\x20-\x7e]*$/.test(line!), line!);
    assert(!line!.includes("SECRET") && !line!.includes("pw@"), line!);
  }
});

Deno.test("explain() bounds what it says", async () => {
  const { line } = await explain(new LacewingError("network", "x".repeat(100_000)));
  assert(line!.length < 2100);
});

Deno.test("explain() says nothing of signals and closed pipes, and gives their codes", async () => {
  assertEquals(await explain(new Interrupted("SIGINT")), { exitCode: 130, line: null });
  assertEquals(await explain(new Interrupted("SIGTERM")), { exitCode: 143, line: null });
  assertEquals(await explain(new Deno.errors.BrokenPipe()), { exitCode: 141, line: null });
});

Deno.test("explain() names the nearest known word", async () => {
  const near = await explain(new NotKnown("Cannot use --ouptut", { word: "--ouptut", known: ["--output", "--tag"] }));
  assert(near.line?.endsWith("(did you mean --output?)"), near.line ?? "");
  const far = await explain(new NotKnown("Cannot use --zzz", { word: "--zzzzzzzz", known: ["--output"] }));
  assert(far.line?.endsWith('(see "lacewing help")'), far.line ?? "");
});

Deno.test("explain() says of what nobody expected that it is a defect", async () => {
  const failure = await explain(new TypeError("x is undefined"));
  assertEquals(failure.exitCode, 1);
  assert(failure.line?.includes("defect") && failure.line.includes("x is undefined"));
  assertEquals((await explain("text")).exitCode, 1);
});
