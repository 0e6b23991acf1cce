/** The tasks that a URL may be are those that the proxy would make of it. */
import { assertEquals, assertRejects } from "@std/assert";
import { parseDaemonConfig } from "../../../peer/config.ts";
import { LacewingError } from "../../../peer/core/errors.ts";
import { taskId } from "../../../peer/core/task_id.ts";
import type { ExplainRequest } from "../../../peer/core/wire/ipc.ts";
import { explain, waysOf } from "../../../peer/explain.ts";
import { proxySettings } from "../../../peer/proxy/proxy_settings.ts";
import type { StoredTaskInfo } from "../../../peer/storage/piece_store.ts";

const DIGEST = `sha256:${"0a".repeat(32)}`;
const BLOB = `https://r.test/v2/lib/app/blobs/${DIGEST}`;

function proxy(yaml = "") {
  const { proxy: section } = parseDaemonConfig(`proxy:\n  listenIP: 127.0.0.1\n${yaml}`, "test");
  return proxySettings(section!, { caCerts: [], insecure: false, allowPrivateNetworks: true });
}

const request = (url: string, { filter = "", tag = "" } = {}): ExplainRequest => ({
  type: "explain",
  v: 1,
  url,
  filter,
  tag,
});
const short = (url: string, yaml = "") =>
  waysOf(request(url), proxy(yaml)).map(({ ways, url, shared }) => [ways.join("+"), url, shared]);

Deno.test("without a proxy there is the task of the request alone", () => {
  assertEquals(waysOf(request(BLOB, { tag: "t" }), null), [
    { ways: ["request"], task_id: taskId(BLOB, { tag: "t" }), url: BLOB, filter: "", tag: "t", shared: true },
  ]);
});

Deno.test("with the usual filter containerd and podman ask for the task of a preheat", () => {
  const ways = waysOf(request(BLOB), proxy());
  assertEquals(ways.map(({ ways }) => ways), [["request"], ["containerd"], ["mirror"]]);
  assertEquals(new Set(ways.map(({ task_id }) => task_id)), new Set([taskId(BLOB)]));
});

Deno.test("a filter without ns makes another task for containerd, and for nobody else", () => {
  const [own, containerd, mirror] = waysOf(request(BLOB), proxy('  defaultFilter: "Expires&Signature"\n'));
  assertEquals(containerd?.task_id, taskId(`${BLOB}?ns=r.test`));
  assertEquals(mirror?.task_id, own?.task_id);
});

const ROWS: [string, string, string, [string, string, boolean][]][] = [
  [
    "a registry that is reached at another URL is asked by its name",
    `http://10.0.0.5:5000/v2/a/blobs/${DIGEST}`,
    '  registryMirror: { registries: [{ host: "r.test:5000", url: "http://10.0.0.5:5000" }] }\n',
    [
      ["request", `http://10.0.0.5:5000/v2/a/blobs/${DIGEST}`, true],
      ["containerd", `http://10.0.0.5:5000/v2/a/blobs/${DIGEST}?ns=r.test%3A5000`, true],
      ["mirror", `http://10.0.0.5:5000/v2/a/blobs/${DIGEST}`, true],
    ],
  ],
  [
    "a URL as containerd asks the mirror for it is podman's without ns",
    `https://r.test/v2/a/blobs/${DIGEST}?x=%7E&ns=r.test`,
    "",
    [
      ["request", `https://r.test/v2/a/blobs/${DIGEST}?x=%7E&ns=r.test`, true],
      ["containerd", `https://r.test/v2/a/blobs/${DIGEST}?x=%7E&ns=r.test`, true],
      ["mirror", `https://r.test/v2/a/blobs/${DIGEST}?x=%7E`, true],
    ],
  ],
  [
    "the registry of a URL to the mirror itself is the one that ns names",
    `http://127.0.0.1:65001/v2/a/blobs/${DIGEST}?ns=r.test`,
    "",
    [
      ["request", `http://127.0.0.1:65001/v2/a/blobs/${DIGEST}?ns=r.test`, true],
      ["containerd", `https://r.test/v2/a/blobs/${DIGEST}?ns=r.test`, true],
      ["mirror", `https://r.test/v2/a/blobs/${DIGEST}`, true],
    ],
  ],
  [
    "the name of a registry gives the URL that the daemon is configured with",
    `https://r.test:5000/v2/a/blobs/${DIGEST}?x=%7E`,
    '  registryMirror: { registries: [{ host: "r.test:5000", url: "http://10.0.0.5:5000" }] }\n',
    [
      ["request", `https://r.test:5000/v2/a/blobs/${DIGEST}?x=%7E`, true],
      ["containerd", `http://10.0.0.5:5000/v2/a/blobs/${DIGEST}?x=%7E&ns=r.test%3A5000`, true],
      ["mirror", `http://10.0.0.5:5000/v2/a/blobs/${DIGEST}?x=%7E`, true],
    ],
  ],
  [
    "a mirror that does not go by names asks its own registry",
    BLOB,
    "  registryMirror: { url: https://own.test, dynamic: false }\n",
    [
      ["request", BLOB, true],
      ["containerd", `https://own.test/v2/lib/app/blobs/${DIGEST}?ns=r.test`, true],
      ["mirror", `https://own.test/v2/lib/app/blobs/${DIGEST}`, true],
    ],
  ],
  ["manifests pass by", "https://r.test/v2/a/manifests/v1", "", [
    ["request", "https://r.test/v2/a/manifests/v1", true],
    ["containerd", "https://r.test/v2/a/manifests/v1?ns=r.test", false],
    ["mirror", "https://r.test/v2/a/manifests/v1", false],
  ]],
  ["a direct rule takes blobs out", BLOB, "  proxies: [{ regx: blobs, direct: true }]\n", [
    ["request", BLOB, true],
    ["containerd", `${BLOB}?ns=r.test`, false],
    ["mirror", BLOB, false],
  ]],
  ["a file without a rule passes by", "http://h/f.bin", "", [
    ["request", "http://h/f.bin", true],
    ["proxy", "http://h/f.bin", false],
  ]],
  ["a rule of the forward proxy may redirect", "http://h/f.bin", '  proxies: [{ regx: bin, redirect: "other:81" }]\n', [
    ["request", "http://h/f.bin", true],
    ["proxy", "http://other:81/f.bin", true],
  ]],
  ["another scheme has nothing to do with the proxy", "s3://b/f", "", [["request", "s3://b/f", true]]],
];
for (const [claim, url, yaml, ways] of ROWS) Deno.test(claim, () => assertEquals(short(url, yaml), ways));

const STORED = {
  spec: { task_id: taskId(BLOB), url: BLOB, tag: "", filter: "" },
  meta: { generation: "g", content_length: 300_000, piece_length: 262_144, ranges: true },
  pieceCount: 1,
  complete: false,
  verified: null,
  lastUsedAtMs: 0,
  checkedAtMs: 0,
} satisfies StoredTaskInfo;

Deno.test("what is here, what others have and the jobs stand beside each task", async () => {
  const asked: string[][] = [];
  const id = taskId(BLOB);
  const host = { host_id: "b", hostname: "n", complete: true, piece_count: 2 };
  const job = { job_id: 1, cluster_id: 1, job_state: "SUCCESS", state: "SUCCESS", host_count: 1 };
  const answer = await explain(request(BLOB), {
    hostId: "a",
    proxy: proxy('  defaultFilter: "Expires"\n'),
    stored: () => [STORED],
    find: (ids) => {
      asked.push([...ids]);
      const task = { task_id: id, content_length: 300_000, piece_length: 262_144, host_count: 1, hosts: [host] };
      return Promise.resolve({ tasks: [task], jobs: [{ task_id: id, ...job }] });
    },
  });
  assertEquals(asked, [[id, taskId(`${BLOB}?ns=r.test`)]]);
  const [own, containerd] = answer.tasks;
  assertEquals(own?.held, { complete: false, content_length: 300_000, piece_count: 1, pieces: 2, verified: null });
  assertEquals([own?.hosts, own?.host_count, own?.jobs], [[host], 1, [job]]);
  assertEquals([containerd?.held, containerd?.hosts, containerd?.jobs], [null, [], []]);
  assertEquals([answer.proxy, answer.cluster_error], [{ filter: "Expires", tag: "" }, null]);
});

Deno.test("schedulers that cannot be asked are told with the reason", async () => {
  const deps = { hostId: "a", proxy: null, stored: () => [] };
  const alone = await explain(request(BLOB), { ...deps, find: null });
  assertEquals([alone.cluster_error?.code, alone.proxy], ["unavailable", null]);
  const late = await explain(request(BLOB), {
    ...deps,
    find: () => Promise.reject(new LacewingError("timeout", "no answer")),
  });
  assertEquals(late.cluster_error, { code: "timeout", message: "no answer" });
});

Deno.test("a URL that is none is wrong use", async () => {
  const deps = { hostId: "a", proxy: proxy(), stored: () => [], find: null };
  await assertRejects(() => explain(request("nothing"), deps), LacewingError, "absolute");
});
