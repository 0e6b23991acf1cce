import { assertEquals } from "@std/assert";
import type { z } from "zod";
import { ipcFollowUp, ipcReply, ipcRequest } from "../../../../../peer/core/wire/ipc.ts";
import { IPC_PROTOCOL } from "../../../../../peer/core/wire/ipc_reply.ts";
import { decodeMessage } from "../../../../../peer/core/wire/scheduler.ts";
import { type BadRow, type GoodRow, testBadRows, testGoodRows } from "./rows.ts";

const DOWNLOAD = {
  type: "download",
  v: IPC_PROTOCOL,
  url: "https://host/x",
  headers: [["Accept", "*/*"], ["Accept", "text/plain"]],
  tag: "t",
  filter: "a&b",
  digest: `sha256:${"0".repeat(64)}`,
  range: "0-9",
  disable_back_source: true,
  rate_limit: 1024,
  delivery: "stream",
  traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
};
const REQUESTS: GoodRow[] = [
  {
    message: DOWNLOAD,
    optional: Object.keys(DOWNLOAD).filter((field) => !["type", "v", "url"].includes(field)),
  },
  { message: { type: "status", v: IPC_PROTOCOL } },
  {
    message: { type: "explain", v: IPC_PROTOCOL, url: "https://host/x", filter: "a&b", tag: "t" },
    optional: ["filter", "tag"],
  },
];
testGoodRows("ipcRequest", ipcRequest, REQUESTS);

Deno.test("ipcRequest download with a URL alone asks for the whole file, without limits", () => {
  const request = { type: "download", v: IPC_PROTOCOL, url: "https://host/x" };
  assertEquals(decodeMessage(ipcRequest, JSON.stringify(request)), {
    ...request,
    headers: [],
    tag: "",
    filter: "",
    digest: null,
    range: null,
    disable_back_source: false,
    rate_limit: 0,
    delivery: "file",
  } as z.output<typeof ipcRequest>);
});

const BAD_REQUESTS: BadRow[] = [
  ["an unknown type", { type: "upload", v: 1 }, "type"],
  ["a type of another direction", { type: "accepted", task_id: "x" }, "type"],
  ["another version", { ...DOWNLOAD, v: 2 }, "v"],
  ["another version of status", { type: "status", v: 0 }, "v"],
  ["another version of explain", { type: "explain", v: 0, url: "https://host/x" }, "v"],
  ["an explanation of no URL", { type: "explain", v: 1, url: "" }, "url"],
  ["an empty URL", { ...DOWNLOAD, url: "" }, "url"],
  ["a URL that is too long", { ...DOWNLOAD, url: "x".repeat(8193) }, "url"],
  ["headers as an object", { ...DOWNLOAD, headers: { a: "b" } }, "headers"],
  ["a header without value", { ...DOWNLOAD, headers: [["a"]] }, "headers.0"],
  ["a header without name", { ...DOWNLOAD, headers: [["", "b"]] }, "headers.0.0"],
  ["a header name that is too long", { ...DOWNLOAD, headers: [["x".repeat(257), ""]] }, "headers.0.0"],
  ["a header value that is too long", { ...DOWNLOAD, headers: [["a", "x".repeat(8193)]] }, "headers.0.1"],
  ["101 headers", { ...DOWNLOAD, headers: Array.from({ length: 101 }, () => ["a", "b"]) }, "headers"],
  ["a tag that is too long", { ...DOWNLOAD, tag: "x".repeat(257) }, "tag"],
  ["a filter that is too long", { ...DOWNLOAD, filter: "x".repeat(1025) }, "filter"],
  ["a digest that is too long", { ...DOWNLOAD, digest: "x".repeat(141) }, "digest"],
  ["a range that is too long", { ...DOWNLOAD, range: "1".repeat(41) }, "range"],
  ["a yes that is no boolean", { ...DOWNLOAD, disable_back_source: "true" }, "disable_back_source"],
  ["a negative rate", { ...DOWNLOAD, rate_limit: -1 }, "rate_limit"],
  ["an infinite rate", { ...DOWNLOAD, rate_limit: null }, "rate_limit"],
  ["an unknown delivery", { ...DOWNLOAD, delivery: "mail" }, "delivery"],
  ["a long traceparent", { ...DOWNLOAD, traceparent: "x".repeat(101) }, "traceparent"],
];
testBadRows("ipcRequest", ipcRequest, BAD_REQUESTS);

testGoodRows("ipcFollowUp", ipcFollowUp, [{ message: { type: "send" } }]);
testBadRows("ipcFollowUp", ipcFollowUp, [["another type", { type: "download" }, "type"], ["no type", {}, "type"]]);

const STATS = {
  task_id: "0".repeat(64),
  content_length: 100,
  offset: 0,
  length: 100,
  from_local: 1,
  from_peers: 90,
  from_source: 9,
  peers: 2,
  verified: `md5:${"0".repeat(32)}`,
  parents: [["host-1", 60], ["host-2", 30]],
};
const DONE = { type: "done", path: "/var/lib/x/data/y", stats: STATS };
const PROGRESS = { type: "progress", total: 100, done: 5, from_local: 0, from_peers: 3, from_source: 2, peers: 1 };
const PROXY = { address: "127.0.0.1:65001", url: "https://r", dynamic: true, registries: ["r:5000"], password: false };
const STATUS = { type: "status", version: "0.1.0", host_id: "h1", tasks: 3, schedulers: 1, pid: 77, proxy: PROXY };
const TASK = {
  ways: ["containerd", "mirror"],
  task_id: "0".repeat(64),
  url: "https://host/x?ns=host",
  filter: "ns",
  tag: "",
  shared: true,
  held: { complete: true, content_length: 10, piece_count: 1, pieces: 1, verified: null },
  host_count: 1,
  hosts: [{ host_id: "h1", hostname: "n", complete: true, piece_count: 1 }],
  jobs: [{ job_id: 1, cluster_id: 1, job_state: "SUCCESS", state: "SUCCESS", host_count: 1 }],
};
const EXPLAINED = {
  type: "explained",
  host_id: "h1",
  proxy: { filter: "ns", tag: "" },
  cluster_error: { code: "unavailable", message: "alone" },
  tasks: [TASK],
};
const ERROR = { type: "error", error: { code: "disk_full", message: "no room" } };
const REPLIES: GoodRow[] = [
  { message: { type: "accepted", task_id: "0".repeat(64) } },
  { message: PROGRESS },
  { message: { type: "data", length: 65536 } },
  { message: DONE },
  { message: STATUS, optional: ["proxy"] },
  { message: EXPLAINED },
  { message: ERROR },
];
testGoodRows("ipcReply", ipcReply, REPLIES);

Deno.test("there is a good row for every type of request and reply", () => {
  const typesOf = (rows: GoodRow[]) => rows.map(({ message }) => String(message.type)).sort();
  assertEquals(typesOf(REQUESTS), ipcRequest.options.map((option) => option.shape.type.value as string).sort());
  assertEquals(typesOf(REPLIES), ipcReply.options.map((option) => option.shape.type.value as string).sort());
});

const NULLS: [string, Record<string, unknown>][] = [
  ["progress of an unknown total", { ...PROGRESS, total: null }],
  ["status without a proxy", { ...STATUS, proxy: null }],
  ["an explanation of what nobody has", {
    ...EXPLAINED,
    proxy: null,
    cluster_error: null,
    tasks: [{ ...TASK, held: null }],
  }],
  ["done without a file", { ...DONE, path: null }],
  ["done that was not verified", { ...DONE, stats: { ...STATS, verified: null } }],
];
for (const [name, reply] of NULLS) {
  Deno.test(`ipcReply reads ${name}`, () => {
    assertEquals(decodeMessage(ipcReply, JSON.stringify(reply)), reply as z.output<typeof ipcReply>);
  });
}

const BAD_REPLIES: BadRow[] = [
  ["a request", DOWNLOAD, "type"],
  ["a long task id", { type: "accepted", task_id: "0".repeat(65) }, "task_id"],
  ["data of negative length", { type: "data", length: -1 }, "length"],
  ["data of an unsafe length", { type: "data", length: 2 ** 53 }, "length"],
  ["data of a length as text", { type: "data", length: "5" }, "length"],
  ["progress without total", { ...PROGRESS, total: undefined }, "total"],
  ["progress of a fraction", { ...PROGRESS, done: 0.5 }, "done"],
  ["a path that is too long", { ...DONE, path: "/".repeat(4097) }, "path"],
  ["stats without length", { ...DONE, stats: { ...STATS, length: undefined } }, "stats.length"],
  ["stats with a wrong parent", { ...DONE, stats: { ...STATS, parents: [["h", -1]] } }, "stats.parents.0.1"],
  [
    "stats with 1,001 parents",
    { ...DONE, stats: { ...STATS, parents: Array.from({ length: 1001 }, () => ["h", 1]) } },
    "stats.parents",
  ],
  ["an explanation of nothing", { ...EXPLAINED, tasks: [] }, "tasks"],
  ["an explanation of an unknown way", { ...EXPLAINED, tasks: [{ ...TASK, ways: ["other"] }] }, "tasks.0.ways.0"],
  ["an explanation of five tasks", { ...EXPLAINED, tasks: Array.from({ length: 5 }, () => TASK) }, "tasks"],
  ["a version that is too long", { ...STATUS, version: "x".repeat(65) }, "version"],
  ["a host id that is too long", { ...STATUS, host_id: "x".repeat(65) }, "host_id"],
  ["an error as text", { type: "error", error: "no room" }, "error"],
  ["a code that is too long", { type: "error", error: { code: "x".repeat(65), message: "" } }, "error.code"],
  ["a message that is too long", { type: "error", error: { code: "x", message: "x".repeat(4001) } }, "error.message"],
];
testBadRows("ipcReply", ipcReply, BAD_REPLIES);
