import { assert, assertEquals } from "@std/assert";
import { allows, isLocalName, isOwnOrigin, neededScopes } from "../../../../manager/auth/access.ts";

const ROWS: [string, string, string[] | null][] = [
  ["GET", "/healthy", null],
  ["GET", "/readyz", null],
  ["GET", "/healthy/", ["job", "cluster"]],
  ["GET", "/healthyx", ["job", "cluster"]],
  ["POST", "/api/v1/jobs", ["job"]],
  ["DELETE", "/api/v1/jobs/1", ["job"]],
  ["GET", "/api/v1/jobsx", ["job", "cluster"]],
  ["GET", "/api/v1/scheduler-clusters", ["cluster", "job"]],
  ["POST", "/api/v1/scheduler-clusters", ["cluster"]],
  ["GET", "/api/v1/personal-access-tokens", ["admin"]],
  ["GET", "/api/v1/schedulers", ["peer"]],
  ["GET", "/api/v1/scheduler/connect", ["peer"]],
  ["GET", "/anything", ["job", "cluster"]],
];
for (const [method, path, scopes] of ROWS) {
  Deno.test(`${method} ${path} needs ${scopes ?? "nothing"}`, () => {
    assertEquals<string[] | null>(neededScopes(method, path), scopes);
  });
}

Deno.test("admin may do everything, others only what one of their scopes says", () => {
  assert(allows({ name: "", scopes: ["admin"] }, ["peer"]));
  assert(allows({ name: "", scopes: ["peer", "job"] }, ["job", "cluster"]));
  assert(!allows({ name: "", scopes: ["peer"] }, ["job", "cluster"]));
  assert(!allows({ name: "", scopes: [] }, ["job"]));
});

Deno.test("only this machine's own names are local", () => {
  for (const name of ["localhost", "127.0.0.1", "127.9.9.9", "[::1]"]) assert(isLocalName(name), name);
  for (const name of ["", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", "::1", "[::2]"]) {
    assert(!isLocalName(name), name);
  }
});

Deno.test("an origin is one's own only with host and port", () => {
  assert(isOwnOrigin(undefined, "localhost:8080"));
  assert(isOwnOrigin("http://localhost:8080", "localhost:8080"));
  for (const origin of ["null", "", "http://localhost", "http://localhost:8081", "http://evil.example"]) {
    assert(!isOwnOrigin(origin, "localhost:8080"), origin);
  }
});
