import { assert, assertEquals, assertStrictEquals, assertStringIncludes } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { connectionError, isConnectError } from "../../../../manager/registry/connection_error.ts";

function failed(code: string): Error {
  return Object.assign(new Error(`the platform says ${code}`), { code });
}

const ROWS: [code: string, kind: string, says: string][] = [
  ["ECONNREFUSED", "network", "refused"],
  ["ENOTFOUND", "network", "name is not known"],
  ["ECONNRESET", "network", "reset"],
  ["EWHATEVER", "network", "the platform says EWHATEVER"],
  ["", "network", "the platform says"],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "tls", "job.caCerts"],
  ["SELF_SIGNED_CERT_IN_CHAIN", "tls", "job.caCerts"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "tls", "job.caCerts"],
  ["CERT_HAS_EXPIRED", "tls", "CERT_HAS_EXPIRED"],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "tls", "ALTNAME"],
  ["EPROTO", "tls", "EPROTO"],
  ["constructor", "network", "the platform says"],
];

for (const [code, kind, says] of ROWS) {
  Deno.test(`connectionError() takes ${code || "no code"} as ${kind}`, () => {
    const cause = failed(code);
    const error = connectionError(cause, "Cannot read https://h/");
    assert(error instanceof LacewingError);
    assertEquals([error.code, error.cause], [kind, cause]);
    assertStringIncludes(error.message, "Cannot read https://h/: ");
    assertStringIncludes(error.message, says);
  });
}

Deno.test("connectionError() leaves our own errors, aborts and what is no error as they are", () => {
  for (const value of [new LacewingError("policy", "no"), new DOMException("x", "AbortError"), "text"]) {
    assertStrictEquals(connectionError(value, "Cannot"), value);
  }
});

Deno.test("isConnectError() is true for what failed before a request could be seen", () => {
  for (const error of [failed("ECONNREFUSED"), failed("ENETUNREACH"), new LacewingError("timeout", "t")]) {
    assert(isConnectError(error));
  }
  for (const error of [failed("ECONNRESET"), failed("CERT_HAS_EXPIRED"), new LacewingError("policy", "p"), null]) {
    assert(!isConnectError(error));
  }
});
