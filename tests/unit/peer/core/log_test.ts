import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import fc from "fast-check";
import { LacewingError } from "../../../../peer/core/errors.ts";
import {
  createLogger,
  escapeControls,
  isSecretName,
  type LogFields,
  type LogLevel,
  printable,
  redactHeaders,
  redactText,
  silentLogger,
} from "../../../../peer/core/log.ts";

/** Stands for a secret in every row: it must not be in any line. */
const SECRET = "s3cr3tVALUE0123456789";

/** What a logger writes for one record. */
function written(message: string, fields?: LogFields): string {
  const lines: string[] = [];
  createLogger((line) => lines.push(line), { level: "debug" }).info(message, fields);
  assertEquals(lines.length, 1);
  return lines[0]!;
}

const record = (message: string, fields?: LogFields) => JSON.parse(written(message, fields));

/** Texts that hold a secret, and what must still be readable. */
const TEXTS: [string, string, string][] = [
  ["user info", `GET http://bob:${SECRET}@host/x failed`, "http://***@host/x failed"],
  ["user info without a name", `http://:${SECRET}@host/x`, "http://***@host/x"],
  ["user info without a password", `http://${SECRET}@host/x`, "http://***@host/x"],
  ["user info with an @ in the password", `http://bob:p@${SECRET}@host/x`, "http://***@host/x"],
  ["user info of an object store", `s3://key:${SECRET}@bucket/x`, "s3://***@bucket/x"],
  ["user info of a database", `postgres://u:${SECRET}@db:5432/lacewing`, "postgres://***@db:5432/lacewing"],
  ["S3 signature v4", `http://b/x?X-Amz-Date=2024&X-Amz-Signature=${SECRET}&v=1`, "X-Amz-Date=2024"],
  ["S3 credential", `http://b/x?X-Amz-Credential=${SECRET}%2F20240101%2Fus-east-1`, "X-Amz-Credential=***"],
  ["S3 session token", `http://b/x?v=1&X-Amz-Security-Token=${SECRET}/+==&z=2`, "&z=2"],
  ["S3 signature v2", `http://b/x?AWSAccessKeyId=${SECRET}&Signature=${SECRET}%3D&Expires=1`, "Signature=***"],
  ["OSS signature v1", `http://b/x?OSSAccessKeyId=${SECRET}&Expires=1&Signature=${SECRET}`, "http://b/x?"],
  ["OSS signature v4", `http://b/x?x-oss-signature=${SECRET}&x-oss-credential=${SECRET}`, "x-oss-signature=***"],
  ["OSS session token", `http://b/x?security-token=${SECRET}`, "security-token=***"],
  ["GCS signature v4", `http://b/x?X-Goog-Signature=${SECRET}&X-Goog-Credential=${SECRET}`, "X-Goog-Signature=***"],
  ["Azure shared access signature", `http://b/x?sv=2022-11-02&sr=b&sig=${SECRET}%2B%3D`, "sv=2022-11-02&sr=b&sig=***"],
  ["CloudFront", `http://b/x?Policy=${SECRET}&Signature=${SECRET}&Key-Pair-Id=${SECRET}`, "Policy=***"],
  ["COS", `http://b/x?q-signature=${SECRET}`, "q-signature=***"],
  ["an access token", `http://b/x?access_token=${SECRET}#part`, "#part"],
  ["an access token in a fragment", `http://b/x#access_token=${SECRET}&state=1`, "&state=1"],
  ["an API key", `http://b/x?api_key=${SECRET}`, "api_key=***"],
  ["a password", `http://b/x?user=bob&password=${SECRET}`, "user=bob"],
  ["a JWT", `http://b/x?jwt=${SECRET}`, "jwt=***"],
  ["a signature in any case", `http://b/x?SIGNATURE=${SECRET}`, "SIGNATURE=***"],
  ["a URL in a URL", `http://p/?to=http://b/x?Signature=${SECRET}`, "to=http://b/x?Signature=***"],
  ["an encoded URL in a URL", `http://p/?to=http%3A%2F%2Fb%2Fx%3Fv%3D1%26sig%3D${SECRET}%26z%3D1`, "v%3D1%26sig%3D***"],
  ["two URLs", `http://a/?sig=${SECRET} and http://b/?sig=${SECRET} differ`, "differ"],
  ["a quoted URL", `Cannot read "http://b/x?Signature=${SECRET}": gone`, `": gone`],
  ["a bearer token", `sent Bearer ${SECRET} to host`, "to host"],
  ["a bearer token in lower case", `sent bearer   ${SECRET}.a-b_c~d+e/f==`, "bearer ***"],
  ["basic credentials", `sent Basic ${btoa(SECRET)} to host`, "to host"],
  [
    "a written out header",
    `Authorization: AWS4-HMAC-SHA256 Credential=${SECRET}, Signature=${SECRET}`,
    "Authorization",
  ],
  ["a header of an own scheme", `authorization: OSS ${SECRET}:${SECRET}\r\nhost: b`, "host: b"],
  ["a proxy's header", `proxy-authorization: Digest ${SECRET}`, "proxy-authorization: ***"],
  ["a cookie", `Cookie: sid=${SECRET}; a=b`, "Cookie: ***"],
  ["a header in JSON", `{"Authorization":"Token ${SECRET}","Range":"bytes=0-9"}`, `"Range":"bytes=0-9"`],
  ["a token header", `x-amz-security-token: ${SECRET}`, "x-amz-security-token: ***"],
];

for (const [name, text, readable] of TEXTS) {
  Deno.test(`redactText() blots out ${name} and nothing around it`, () => {
    const shown = redactText(text);
    assert(!shown.includes(SECRET) && !shown.includes(btoa(SECRET)), shown);
    assertStringIncludes(shown, readable);
  });
  Deno.test(`a logger never writes ${name}: as message, field, nested, in errors and their causes`, () => {
    const line = [
      written(text),
      written("m", { url: text }),
      written("m", { a: { b: [text] } }),
      written("m", { error: new Error(text) }),
      written("m", { error: new LacewingError("network", text, { cause: new TypeError(text) }) }),
      written("m", { error: new Error("outer", { cause: new Error("inner", { cause: text }) }) }),
    ].join("\n");
    assert(!line.includes(SECRET) && !line.includes(btoa(SECRET)), line);
  });
}

const UNTOUCHED = [
  "",
  "Cannot reach http://host:8080/models/a.bin?versionId=3&part=2",
  "mail bob@example.com",
  "http://host/@scope/package",
  "http://host/x?mail=bob@example.com",
  "image lib/app@sha256:abc",
  "The registry wants Basic authentication",
  'Bearer realm="https://auth.example/token",service="registry"',
  "a bearer token is wanted",
  "64.0 MiB in 1.9 s, 91% from 7 peers",
];
for (const text of UNTOUCHED) {
  Deno.test(`redactText() leaves ${JSON.stringify(text)} as it is`, () => assertEquals(redactText(text), text));
}

const SECRET_NAMES = [
  "Authorization",
  "authorization",
  "Proxy-Authorization",
  "Cookie",
  "Set-Cookie",
  "X-Auth-Token",
  "X-Amz-Security-Token",
  "x-oss-security-token",
  "X-Api-Key",
  "X-Registry-Auth",
  "PRIVATE-TOKEN",
  "password",
  "passwd",
  "join_token",
  "joinToken",
  "api_key",
  "accessKeyId",
  "access-key",
  "secretKey",
  "credentials",
  "Signature",
];
for (const name of SECRET_NAMES) {
  Deno.test(`isSecretName() knows ${name}`, () => {
    assert(isSecretName(name));
    assert(!written("m", { [name]: SECRET }).includes(SECRET));
    assert(!written("m", { request: { headers: { [name]: [SECRET, SECRET] } } }).includes(SECRET));
    assert(!written("m", { headers: [["Accept", "*/*"], [name, SECRET]] }).includes(SECRET));
    assert(!written("m", { headers: new Map([[name, SECRET]]) }).includes(SECRET));
    assertEquals(redactHeaders({ [name]: SECRET }), { [name]: "***" });
  });
}

const OPEN_NAMES = ["Accept", "Range", "Host", "User-Agent", "WWW-Authenticate", "url", "task_id", "authorize", "key"];
for (const name of OPEN_NAMES) {
  Deno.test(`isSecretName() lets ${name} be shown`, () => {
    assert(!isSecretName(name));
    assertEquals(redactHeaders({ [name]: "v" }), { [name]: "v" });
    assertEquals(record("m", { [name]: "v" })[name], "v");
  });
}

Deno.test("a Headers object is written with its secret values blotted out", () => {
  const headers = new Headers({ authorization: SECRET, range: "bytes=0-9" });
  assertEquals(record("m", { headers }).headers, { authorization: "***", range: "bytes=0-9" });
});

Deno.test("a URL object is written without its credentials", () => {
  const url = new URL(`http://bob:${SECRET}@host/x?sig=${SECRET}&v=1`);
  assertEquals(record("m", { url }).url, "http://***@host/x?sig=***&v=1");
});

Deno.test("a secret that is not set is seen to be not set", () => {
  const { token, password } = record("m", { token: null, password: false });
  assertEquals([token, password], [null, false]);
});

Deno.test("a record holds time, level, room and message before its fields, as one line of JSON", () => {
  const lines: string[] = [];
  const log = createLogger((line) => lines.push(line), { room: "peer/task" });
  log.warn("two\nlines", { pieces: 3, done: true, at: null, skipped: undefined });
  assert(!lines[0]!.includes("\n"));
  const { time, ...rest } = JSON.parse(lines[0]!);
  assertEquals(new Date(time).toISOString(), time);
  assertEquals(rest, { level: "warn", room: "peer/task", message: "two\nlines", pieces: 3, done: true, at: null });
  assertEquals(Object.keys(JSON.parse(lines[0]!)).slice(0, 4), ["time", "level", "room", "message"]);
});

Deno.test("room() writes to the same sink at the same level under another name", () => {
  const lines: string[] = [];
  const log = createLogger((line) => lines.push(line), { level: "warn", room: "a" }).room("b");
  log.info("no");
  log.error("yes");
  assertEquals(lines.map((line) => JSON.parse(line).room), ["b"]);
});

const LEVELS: LogLevel[] = ["debug", "info", "warn", "error"];
for (const [at, level] of LEVELS.entries()) {
  Deno.test(`a logger of level ${level} drops what is below`, () => {
    const seen: string[] = [];
    const log = createLogger((line) => seen.push(JSON.parse(line).level), { level });
    for (const each of LEVELS) log[each]("m");
    assertEquals(seen, LEVELS.slice(at));
  });
}

Deno.test("a logger writes from info on unless told otherwise, and the silent one nothing", () => {
  const seen: string[] = [];
  const log = createLogger((line) => seen.push(line));
  log.debug("no");
  log.info("yes");
  assertEquals(seen.length, 1);
  assertEquals("room" in JSON.parse(seen[0]!), false);
  silentLogger.error("nowhere");
});

Deno.test("long texts are cut, as message, field and in errors", () => {
  const long = "x ".repeat(500_000);
  const { message, field, error } = record(long, { field: long, error: new Error(long) });
  for (const text of [message, field, error.message, error.stack]) assertEquals(text.length, 2000);
});

Deno.test("a cut text does not end within a password", () => {
  for (let before = 7900; before < 8010; before++) {
    const line = written("m", { text: `http://a/?sig=${"y".repeat(before)} http://bob:${SECRET}@host/` });
    assert(!line.includes("s3cr"), String(before));
  }
});

Deno.test("hostile text is redacted in bounded time", () => {
  const startedAtMs = performance.now();
  for (const part of ["?sig", "&token", "http://", "a@", "Bearer ", "x-", "%3Fsig", "?", "sig", "authorization:"]) {
    written(part.repeat(300_000), { url: part.repeat(300_000) });
  }
  assert(performance.now() - startedAtMs < 2000);
});

Deno.test("long lists, wide objects and deep ones are cut", () => {
  const wide = Object.fromEntries(Array.from({ length: 500 }, (_, number) => [`k${number}`, number]));
  const { list, object, deep } = record("m", {
    list: Array.from({ length: 500 }, () => 1),
    object: wide,
    deep: { a: { b: { c: { d: { e: SECRET } } } } },
  });
  assertEquals([list.length, Object.keys(object).length], [100, 100]);
  assertEquals(deep, { a: { b: { c: { d: "…" } } } });
});

Deno.test("a record that is too long keeps its message and tells how long it was", () => {
  const lines: string[] = [];
  const log = createLogger((line) => lines.push(line), { room: "a" });
  log.error("why", { texts: Array.from({ length: 90 }, () => "x".repeat(2000)) });
  const { time: _, ...rest } = JSON.parse(lines[0]!);
  assert(rest.cut > 64 * 1024 && lines[0]!.length < 200);
  assertEquals({ ...rest, cut: 0 }, { level: "error", room: "a", message: "why", cut: 0 });
});

Deno.test("bytes are written as their length, dates and bigints as text", () => {
  const { bytes, at, never, big } = record("m", {
    bytes: new Uint8Array(5_000_000),
    at: new Date(0),
    never: new Date(NaN),
    big: 2n ** 64n,
  });
  assertEquals([bytes, at, never, big], ["5000000 bytes", "1970-01-01T00:00:00.000Z", null, "18446744073709551616"]);
});

Deno.test("errors are written with code or name, message and causes", () => {
  const cause = new TypeError("connection refused");
  const { error } = record("m", { error: new LacewingError("network", "Cannot reach", { cause }) });
  assertEquals([error.code, error.message], ["network", "Cannot reach"]);
  assertEquals([error.cause.name, error.cause.message], ["TypeError", "connection refused"]);
  assertStringIncludes(error.cause.stack, "TypeError: connection refused");
});

Deno.test("values that hold themselves are cut, not followed for ever", () => {
  const object: Record<string, unknown> = {};
  object.self = object;
  const list: unknown[] = [];
  list.push(list);
  const error = new LacewingError("unknown", "round");
  error.cause = error;
  const other = new Error("round");
  other.cause = other;
  const line = written("m", { object, list, error, other });
  assert(line.length < 20_000);
});

Deno.test("any fields become one line of JSON, whatever they are", () => {
  const values = fc.dictionary(
    fc.string(),
    fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true, withTypedArray: true }),
  );
  fc.assert(fc.property(fc.string(), values, (message, fields) => {
    const line = written(message, fields);
    assert(!line.includes("\n"));
    JSON.parse(line);
  }));
});

const CONTROLS: [string, string][] = [
  ["an escape sequence", "\x1b[31mred\x1b[0m"],
  ["a C1 control sequence", "\x9b31mred"],
  ["a bell, a backspace and a delete", "\x07\x08\x7f"],
  ["a carriage return", "100%\rlacewing: done"],
  ["text that turns", "\u202egpj.exe\u2066"],
  ["a line end of Unicode", "a\u2028b\u2029c"],
];
for (const [claim, text] of CONTROLS) {
  Deno.test(`a terminal never gets ${claim}, and a reader of the log gets it back`, () => {
    assertEquals(/^[\x20-\x7e]*$/.test(escapeControls(text)), true, escapeControls(text));
    assertEquals(printable(`${text}\n${text}`), `${escapeControls(text)}\n${escapeControls(text)}`);
    const lines: string[] = [];
    createLogger((line) => lines.push(line)).info(text, { text });
    assertEquals(/^[\x20-\x7e]*$/.test(lines[0]!), true, lines[0]);
    assertEquals([JSON.parse(lines[0]!).message, JSON.parse(lines[0]!).text], [text, text]);
  });
}
