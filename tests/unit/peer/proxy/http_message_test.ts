import { assertEquals, assertThrows } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import {
  answerFraming,
  endToEnd,
  type Field,
  formatHead,
  keepsAlive,
  parseAnswerHead,
  parseRequestHead,
  requestFraming,
  valueOf,
} from "../../../../peer/proxy/http_message.ts";

const HEAD = "GET /v2/ HTTP/1.1\r\nHost: h";

function code(work: () => unknown): string {
  return (assertThrows(work, LacewingError) as LacewingError).code;
}

Deno.test("parseRequestHead() keeps order, spelling and repetitions of the fields", () => {
  const head = parseRequestHead("PATCH http://h/a?b HTTP/1.0\r\nHost: h\r\nAccept: a\r\nACCEPT:b \t\r\nX-Empty:");
  assertEquals([head.method, head.target, head.minor], ["PATCH", "http://h/a?b", 0]);
  assertEquals(head.fields, [["Host", "h"], ["Accept", "a"], ["ACCEPT", "b"], ["X-Empty", ""]]);
  assertEquals(valueOf(head.fields, "accept"), "a, b");
  assertEquals(valueOf(head.fields, "none"), null);
});

for (
  const text of [
    "",
    "GET / HTTP/1.1",
    "GET  / HTTP/1.1\r\nHost: h",
    "GET /\u00e9 HTTP/1.1\r\nHost: h",
    "G@T / HTTP/1.1\r\nHost: h",
    "GET / HTTP/1.2\r\nHost: h",
    "GET / http/1.1\r\nHost: h",
    `GET /${"a".repeat(17_000)} HTTP/1.1\r\nHost: h`,
    `${HEAD}\r\nHost: other`,
    `${HEAD}\r\n folded`,
    `${HEAD}\r\nno colon`,
    `${HEAD}\r\n: no name`,
    `${HEAD}\r\nA B: c`,
    `${HEAD}\r\nA : c`,
    `${HEAD}\r\nA: b\nC: d`,
    `${HEAD}\r\nA: b\rC: d`,
    `${HEAD}\r\nA: b\0`,
    HEAD + "\r\nA: b".repeat(201),
  ]
) {
  Deno.test(`parseRequestHead() refuses ${JSON.stringify(text.slice(0, 60))}`, () => {
    assertEquals(code(() => parseRequestHead(text)), "protocol");
  });
}

for (
  const [fields, framing] of [
    ["", { kind: "length", length: 0 }],
    ["\r\nContent-Length: 12", { kind: "length", length: 12 }],
    ["\r\nTransfer-Encoding: Chunked", { kind: "chunked" }],
  ] as const
) {
  Deno.test(`requestFraming() of ${JSON.stringify(fields)}`, () => {
    assertEquals(requestFraming(parseRequestHead(HEAD + fields)), framing);
  });
}

for (
  const fields of [
    "Content-Length: 1\r\nTransfer-Encoding: chunked",
    "Content-Length: 1\r\nContent-Length: 1",
    "Content-Length: 1,1",
    "Content-Length: -1",
    "Content-Length: 0x1",
    "Content-Length: 1e3",
    "Content-Length:",
    "Content-Length: 9999999999999999",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
  ]
) {
  Deno.test(`requestFraming() refuses ${JSON.stringify(fields)}`, () => {
    assertEquals(code(() => requestFraming(parseRequestHead(`${HEAD}\r\n${fields}`))), "protocol");
  });
}

for (
  const [text, method, framing] of [
    ["HTTP/1.1 200 OK\r\nContent-Length: 3", "GET", { kind: "length", length: 3 }],
    ["HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3", "GET", { kind: "length", length: 3 }],
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", "GET", { kind: "chunked" }],
    ["HTTP/1.0 200", "GET", { kind: "close" }],
    ["HTTP/1.1 200 OK\r\nContent-Length: 3", "HEAD", { kind: "length", length: 0 }],
    ["HTTP/1.1 204 No\r\nContent-Length: 3", "GET", { kind: "length", length: 0 }],
    ["HTTP/1.1 304 Not Modified\r\nContent-Length: 3", "GET", { kind: "length", length: 0 }],
  ] as const
) {
  Deno.test(`answerFraming() of ${JSON.stringify(text)} to ${method}`, () => {
    assertEquals(answerFraming(parseAnswerHead(text), method), framing);
  });
}

for (
  const text of [
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4",
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip",
    "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked",
  ]
) {
  Deno.test(`answerFraming() refuses ${JSON.stringify(text)}`, () => {
    assertEquals(code(() => answerFraming(parseAnswerHead(text), "GET")), "source_failed");
  });
}

for (
  const text of ["", "HTTP/1.1 2000 OK", "HTTP/1.1", "HTTP/2 200", "ICY 200 OK", "HTTP/1.1 200 OK\r\nfolded\r\n x"]
) {
  Deno.test(`parseAnswerHead() refuses ${JSON.stringify(text)}`, () => {
    assertEquals(code(() => parseAnswerHead(text)), "source_failed");
  });
}

for (
  const [minor, connection, expected] of [
    [1, "", true],
    [1, "close", false],
    [1, "X-A, Close", false],
    [0, "", false],
    [0, "keep-alive", true],
  ] as const
) {
  Deno.test(`keepsAlive() of HTTP/1.${minor} with Connection: ${connection}`, () => {
    const fields: Field[] = connection === "" ? [] : [["Connection", connection]];
    assertEquals(keepsAlive({ minor, fields }), expected);
  });
}

Deno.test("endToEnd() leaves out the connection's fields, those that Connection names, and those given", () => {
  const fields: Field[] = [
    ["Connection", "X-One , close"],
    ["x-one", "1"],
    ["Upgrade", "h2c"],
    ["Proxy-Authorization", "secret"],
    ["Transfer-Encoding", "chunked"],
    ["Host", "h"],
    ["Link", "</a>; rel=next"],
  ];
  assertEquals(endToEnd(fields, ["host"]), [["Link", "</a>; rel=next"]]);
});

Deno.test("formatHead() gives back the bytes that were read", () => {
  const bytes = formatHead("HTTP/1.1 200 OK", [["X-A", "caf\u00e9"]]);
  assertEquals(bytes.at(-5), 0xe9);
  assertEquals(String.fromCharCode(...bytes), "HTTP/1.1 200 OK\r\nX-A: caf\u00e9\r\n\r\n");
});
