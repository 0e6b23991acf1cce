import { assert, assertEquals } from "@std/assert";
import { type ErrorCode, ERRORS, LacewingError } from "../../../../peer/core/errors.ts";
import { refusal, refusalOf } from "../../../../peer/proxy/refusals.ts";

for (
  const [code, status] of [
    ["protocol", 400],
    ["bad_request", 400],
    ["policy", 403],
    ["timeout", 504],
    ["unavailable", 503],
    ["disk_full", 503],
    ["network", 502],
    ["tls", 502],
    ["source_not_found", 502],
    ["no_holder", 502],
  ] as const
) {
  Deno.test(`refusalOf(${code}) is ${status}`, () => {
    assertEquals(refusalOf(new LacewingError(code, "x")).status, status);
  });
}

Deno.test("refusalOf() never says 404 or 401 in the origin's place, and hides what is unexpected", () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    assert(![401, 404].includes(refusalOf(new LacewingError(code, "x")).status), code);
  }
  const { status, body } = refusalOf(new TypeError("inner secret"));
  assertEquals(status, 500);
  assert(!body.includes("secret"));
});

Deno.test("refusal() is an error envelope without secrets and with a bound", () => {
  const { body, fields } = refusal(502, "UNAVAILABLE", `Cannot read http://u:p@h/?Signature=abc ${"x".repeat(2000)}`);
  const { errors } = JSON.parse(body);
  assertEquals([errors[0].code, fields], ["UNAVAILABLE", [["Content-Type", "application/json"]]]);
  assert(!body.includes("abc") && !body.includes("u:p"), body);
  assert(body.length < 700);
});
