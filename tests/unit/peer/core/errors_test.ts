import { assert, assertEquals, assertInstanceOf } from "@std/assert";
import {
  type ErrorCode,
  ERRORS,
  fromWireError,
  isErrorCode,
  LacewingError,
  toWireError,
} from "../../../../peer/core/errors.ts";

/** Exit codes that the public interface gives a meaning. */
const EXIT_CODES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 130];

for (const [code, { status, exitCode }] of Object.entries(ERRORS)) {
  Deno.test(`ERRORS.${code} has an HTTP error status and a published exit code`, () => {
    assert(status >= 400 && status <= 599);
    assert(EXIT_CODES.includes(exitCode));
  });
}

/** The codes are public: a change here breaks scripts and clients. */
const PUBLISHED: [ErrorCode, number, number, boolean][] = [
  ["unknown", 500, 1, false],
  ["usage", 400, 2, false],
  ["source_not_found", 404, 3, false],
  ["source_refused", 403, 4, false],
  ["network", 502, 5, true],
  ["timeout", 504, 6, true],
  ["tls", 502, 7, false],
  ["source_failed", 502, 8, true],
  ["disk_full", 507, 9, false],
  ["file", 500, 11, false],
  ["digest_mismatch", 502, 12, false],
  ["range_not_satisfiable", 416, 13, false],
  ["content_changed", 409, 13, true],
  ["no_daemon", 503, 14, true],
  ["policy", 403, 15, false],
  ["canceled", 409, 130, false],
];
for (const [code, status, exitCode, retryable] of PUBLISHED) {
  Deno.test(`${code} means status ${status} and exit ${exitCode}`, () => {
    assertEquals(ERRORS[code], { status, exitCode, retryable } as typeof ERRORS[typeof code]);
  });
}

Deno.test("LacewingError keeps code, message and cause", () => {
  const cause = new TypeError("connection refused");
  const error = new LacewingError("network", "Cannot reach the origin", { cause });
  assertInstanceOf(error, Error);
  assertEquals([error.name, error.code, error.message], ["LacewingError", "network", "Cannot reach the origin"]);
  assert(error.cause === cause);
});

for (const value of ["unknown", "usage", "too_many_requests"]) {
  Deno.test(`isErrorCode() knows ${value}`, () => assert(isErrorCode(value)));
}
for (
  const value of ["", "Unknown", "no_such", "__proto__", "toString", "constructor", 20, null, undefined, ["usage"]]
) {
  Deno.test(`isErrorCode() refuses ${JSON.stringify(value)}`, () => assert(!isErrorCode(value)));
}

const WIRE: [string, unknown, { code: ErrorCode; message: string }][] = [
  ["a LacewingError", new LacewingError("disk_full", "full"), { code: "disk_full", message: "full" }],
  ["an abort", new DOMException("stop", "AbortError"), { code: "canceled", message: "stop" }],
  ["a timeout", new DOMException("late", "TimeoutError"), { code: "timeout", message: "late" }],
  ["another DOMException", new DOMException("x", "DataError"), { code: "unknown", message: "x" }],
  ["any Error", new RangeError("bad"), { code: "unknown", message: "bad" }],
  ["a text", "oops", { code: "unknown", message: "oops" }],
  ["undefined", undefined, { code: "unknown", message: "undefined" }],
];
for (const [name, error, wire] of WIRE) {
  Deno.test(`toWireError() of ${name} is ${wire.code}`, () => assertEquals(toWireError(error), wire));
}

const LONG = "x".repeat(100_000);
for (const error of [new LacewingError("file", LONG), new DOMException(LONG, "AbortError"), new Error(LONG), LONG]) {
  Deno.test(`toWireError() cuts a long message of ${typeof error === "string" ? "a text" : error.name}`, () => {
    assertEquals(toWireError(error).message.length, 2000);
  });
}

Deno.test("every code comes back from the wire as itself", () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    const back = fromWireError(toWireError(new LacewingError(code, `about ${code}`)));
    assertEquals([back.code, back.message], [code, `about ${code}`]);
  }
});

for (const code of ["later_code", "", "__proto__", "hasOwnProperty"]) {
  Deno.test(`fromWireError() takes the code ${JSON.stringify(code)} as unknown and keeps the message`, () => {
    const back = fromWireError({ code, message: "why" });
    assertEquals([back.code, back.message], ["unknown", "why"]);
  });
}
