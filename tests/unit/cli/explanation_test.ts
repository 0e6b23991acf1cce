/** What people and programs read of a task, and the reasons why two tasks are not one. */
import { assert, assertEquals } from "@std/assert";
import { differences, explanationOf, renderExplanation } from "../../../cli/explanation.ts";
import { taskId } from "../../../peer/core/task_id.ts";
import type { Explained } from "../../../peer/ipc/client.ts";

const BLOB = "https://r.test/v2/a/blobs/sha256:aa";
const ask = (url: string, { filter = "", tag = "" } = {}) => ({ url, filter, tag });

const REASONS: [string, ReturnType<typeof ask>, ReturnType<typeof ask>, string[]][] = [
  ["the same", ask(BLOB), ask(`${BLOB}?ns=r.test`, { filter: "Expires&ns" }), []],
  ["ns that no filter leaves out", ask(BLOB), ask(`${BLOB}?ns=r.test`, { filter: "Expires" }), [
    "ns=r.test",
    "stays in the proxy's URL",
    'proxy.defaultFilter is "Expires"',
  ]],
  ["a parameter that only the proxy leaves out", ask(`${BLOB}?v=1`), ask(`${BLOB}?v=1`, { filter: "v" }), [
    "v=1",
    "there is no --filter",
  ]],
  ["a parameter that --filter does not name", ask(`${BLOB}?v=1`, { filter: "w" }), ask(BLOB), ['--filter is "w"']],
  ["another host", ask(BLOB), ask(BLOB.replace("https://r.test", "http://10.0.0.1:5000")), ["http://10.0.0.1:5000"]],
  ["another tag", ask(BLOB, { tag: "a" }), ask(BLOB, { tag: "b" }), ['"a"', 'proxy.defaultTag is "b"']],
];
for (const [name, own, theirs, words] of REASONS) {
  Deno.test(`differences() of tasks with ${name}`, () => {
    const reasons = differences(own, theirs);
    assertEquals(reasons.length, words.length === 0 ? 0 : 1, reasons.join("\n"));
    for (const word of words) assert(reasons[0]?.includes(word), `${reasons[0]} does not say ${word}`);
  });
}

Deno.test("signed values are never told", () => {
  const question = ask(`${BLOB}?X-Amz-Signature=s3cret`);
  assertEquals(differences(question, ask(BLOB)).join().includes("s3cret"), false);
  const explanation = explanationOf(question, { explained: null, reason: "no daemon" });
  assertEquals(JSON.stringify(explanation).includes("s3cret"), false);
});

Deno.test("without a daemon the id is told, what went into it, and what could not be asked", () => {
  const question = ask("https://h/f?b=2&a=1&Expires=9", { filter: "Expires&nothing", tag: "v2" });
  const text = renderExplanation(explanationOf(question, { explained: null, reason: "no daemon answers" }));
  assertEquals(text.split("\n"), [
    `task     ${taskId(question.url, question)}`,
    "url      https://h/f?a=1&b=2",
    "filter   Expires&nothing (left out here: Expires)",
    "tag      v2",
    "daemon   not asked: no daemon answers",
    "cluster  not asked",
    "preheat  not asked",
    "proxy    not asked",
    "",
  ]);
});

function explained(own: Partial<Explained["tasks"][number]> = {}, more: Partial<Explained> = {}): Explained {
  const nobody = { shared: true, held: null, host_count: 0, hosts: [], jobs: [] };
  const filter = "Expires";
  const asked = `${BLOB}?ns=r.test`;
  return {
    host_id: "me",
    proxy: { filter, tag: "" },
    cluster_error: null,
    tasks: [
      { ways: ["request"], task_id: taskId(BLOB), ...ask(BLOB), ...nobody, ...own },
      { ways: ["containerd"], task_id: taskId(asked, { filter }), ...ask(asked, { filter }), ...nobody },
      { ways: ["mirror"], task_id: taskId(BLOB), ...ask(BLOB, { filter }), ...nobody, ...own },
    ],
    ...more,
  };
}

Deno.test("who has it is told of this daemon, the others and the jobs, and where the proxy's task is another one", () => {
  const host = (host_id: string, complete: boolean) => ({
    host_id,
    hostname: `name-${host_id}`,
    complete,
    piece_count: 1,
  });
  const text = renderExplanation(explanationOf(ask(BLOB), {
    explained: explained({
      held: { complete: true, content_length: 2048, piece_count: 1, pieces: 1, verified: "sha256:aa" },
      host_count: 5,
      hosts: [host("me", true), host("b", true), host("c", false)],
      jobs: [{ job_id: 7, cluster_id: 1, job_state: "SUCCESS", state: "SUCCESS", host_count: 2 }],
    }),
    reason: null,
  }));
  for (
    const line of [
      "daemon   has it: 2.0 KiB in 1 piece, verified sha256:aa\n",
      "cluster  name-b (complete), name-c (1 piece), 2 more\n",
      "preheat  job 7 (SUCCESS): SUCCESS in cluster 1, on 2 hosts\n",
      "\nproxy    for containerd: another task, ",
      'differs  ns=r.test stays in the proxy\'s URL: proxy.defaultFilter is "Expires"\n',
      "daemon   has nothing of it\ncluster  no other host has it\npreheat  no job had it\n",
      "\nproxy    for podman, skopeo, CRI-O and docker: the same task\n",
    ]
  ) assert(text.includes(line), `${text}\ndoes not say ${line}`);
});

Deno.test("a part of a content, a daemon alone, a daemon without proxy, and what passes by are told so", () => {
  const held = { complete: false, content_length: 2048, piece_count: 1, pieces: 4, verified: null };
  const alone = { code: "unavailable", message: "this daemon works alone" };
  const { tasks } = explained({ held, shared: false });
  const text = renderExplanation(
    explanationOf(ask(BLOB), { explained: explained({}, { tasks, cluster_error: alone }), reason: null }),
  );
  assert(text.includes("daemon   has 1 of 4 pieces\ncluster  not asked: this daemon works alone\n"), text);
  assert(text.includes("swarm    passes by"), text);
  const without = explained({}, { tasks: explained().tasks.slice(0, 1), proxy: null });
  const explanation = explanationOf(ask(BLOB), { explained: without, reason: null });
  assertEquals(explanation.proxy, null);
  assert(renderExplanation(explanation).includes("proxy    this daemon has none"));
});
