import { assertEquals } from "@std/assert";
import type { Field } from "../../../../peer/proxy/http_message.ts";
import { passedOn, whoAsks } from "../../../../peer/proxy/origin_fields.ts";

const FIELDS: Field[] = [
  ["Host", "proxy"],
  ["User-Agent", "containerd/1.6"],
  ["Accept", "a"],
  ["Accept", "b"],
  ["Accept-Encoding", "gzip"],
  ["Authorization", "Bearer x"],
  ["Cookie", "c"],
  ["X-Api-Key", "k"],
  ["Range", "bytes=1-"],
  ["If-Range", '"e"'],
  ["X-Lacewing-Tag", "t"],
  ["X-Dragonfly-Registry", "r"],
  ["Proxy-Authorization", "Basic p"],
  ["Connection", "close"],
  ["Docker-Distribution-Api-Version", "registry/2.0"],
  ["Expect", "100-continue"],
  ["Content-Length", "0"],
];

Deno.test("whoAsks() keeps what tells one client from another, and nothing else", () => {
  assertEquals(whoAsks(FIELDS), [["Authorization", "Bearer x"], ["Cookie", "c"], ["X-Api-Key", "k"]]);
});

Deno.test("passedOn() keeps all that is not of the connection or for this proxy", () => {
  const names = passedOn(FIELDS, { isIdentity: false }).map(([name]) => name);
  assertEquals(names, [
    "User-Agent",
    "Accept",
    "Accept",
    "Accept-Encoding",
    "Authorization",
    "Cookie",
    "X-Api-Key",
    "Range",
    "If-Range",
    "Docker-Distribution-Api-Version",
  ]);
});

Deno.test("passedOn() asks registries for uncompressed bytes", () => {
  const codings = passedOn(FIELDS, { isIdentity: true }).filter(([name]) => name === "Accept-Encoding");
  assertEquals(codings, [["Accept-Encoding", "identity"]]);
});
