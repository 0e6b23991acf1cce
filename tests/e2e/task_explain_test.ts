/** `lacewing task explain`: with real daemons, a manager, a preheat and a registry. */
// covers: cli/commands/task.ts, cli/daemon_question.ts
import { assert, assertEquals } from "@std/assert";
import { taskId } from "../../peer/core/task_id.ts";
import { jobEnded, startCluster } from "../testutil/cluster.ts";
import { startOrigin } from "../testutil/origin.ts";
import { Place } from "../testutil/place.ts";
import { runClient, spawnDaemon } from "../testutil/process.ts";

const DIGEST = `sha256:${"0a".repeat(32)}`;
const BLOB = `https://r.test/v2/lib/app/blobs/${DIGEST}`;

async function explain(socket: string, ...args: string[]) {
  const result = await runClient(["task", "explain", "--daemon-sock", socket, ...args]);
  assertEquals(result.code, 0, result.stderr);
  return result.stdout;
}

Deno.test("without a daemon the id is printed, and what could not be asked", async () => {
  await using place = new Place();
  const args = ["https://h/f?b=2&Expires=1", "--filter", "Expires", "--tag", "v2"];
  const text = await explain(place.path("none.sock"), ...args);
  assert(
    text.startsWith(`task     ${taskId(args[0]!, { filter: "Expires", tag: "v2" })}\nurl      https://h/f?b=2\n`),
    text,
  );
  assert(text.includes("daemon   not asked: ") && text.includes("none.sock"));
  const json = JSON.parse(await explain(place.path("none.sock"), ...args, "--json"));
  assertEquals([json.task_id, json.found, json.proxy, json.left_out], [
    taskId(args[0]!, { filter: "Expires", tag: "v2" }),
    null,
    null,
    ["Expires"],
  ]);
});

const BAD: [string[], string][] = [
  [["task"], "task explain URL"],
  [["task", "explane", BLOB], "did you mean explain?"],
  [["task", "explain"], "no URL"],
  [["task", "explain", "h/f"], "absolute"],
  [["task", "explain", BLOB, BLOB], "one URL"],
  [["task", "explain", `http://h/${"x".repeat(8200)}`], "8192"],
  [["task", "explain", BLOB, "--tag", "x".repeat(257)], "--tag"],
  [["task", "explain", BLOB, "--filter"], "missing"],
  [["task", "explain", BLOB, "--range", "0-1"], "--range"],
];
Deno.test("wrong use ends with exit code 2 and the reason", async () => {
  for (const [args, words] of BAD) {
    const { code, stdout, stderr } = await runClient(args);
    assertEquals([code, stdout], [2, ""], args.join(" ").slice(0, 200));
    assert(stderr.includes(words), stderr);
  }
});

Deno.test("a preheat, its hosts and a host that has nothing yet are told apart", async () => {
  await using origin = startOrigin();
  const url = origin.put("/f", { size: 700_000 });
  await using cluster = await startCluster({
    daemons: 2,
    seeds: 1,
    daemon: { config: { proxy: { tcpListen: { port: 0 } } } },
  });
  const [daemon] = cluster.daemons;
  const nobody = await explain(daemon!.socket, url);
  assert(
    nobody.includes("daemon   has nothing of it\ncluster  no other host has it\npreheat  no job had it\n"),
    nobody,
  );
  const args = { type: "file", url };
  const job = await cluster.manager.api("POST", "/api/v1/jobs", { type: "preheat", args });
  assertEquals((await jobEnded(cluster.manager, job.body.id)).status, "SUCCESS");
  const text = await explain(daemon!.socket, url);
  assert(text.includes(`daemon   has nothing of it\ncluster  seed-0 (complete)\n`), text);
  assert(text.includes(`preheat  job ${job.body.id} (SUCCESS): SUCCESS in cluster 1, on 1 host\n`), text);
  const json = JSON.parse(await explain(cluster.seeds[0]!.socket, url, "--json"));
  assertEquals([json.task_id, json.found.held.complete, json.found.other_hosts], [taskId(url), true, 0]);
  // Another tag is another task.
  const tagged = await explain(daemon!.socket, url, "--tag", "v2");
  assert(tagged.includes("no job had it") && tagged.includes('the tag of the command is "v2"'), tagged);
});

Deno.test("a proxy whose filter does not name ns makes another task for containerd, and the reason is told", async () => {
  const proxy = { tcpListen: { port: 0 }, defaultFilter: "Expires&Signature" };
  await using narrow = await spawnDaemon({ config: { proxy } });
  await using usual = await spawnDaemon({ config: { proxy: { tcpListen: { port: 0 } } } });
  const text = await explain(narrow.socket, BLOB);
  const other = taskId(`${BLOB}?ns=r.test`);
  assert(text.includes(`proxy    for containerd: another task, ${other}\n`), text);
  assert(
    text.includes(`differs  ns=r.test stays in the proxy's URL: proxy.defaultFilter is "Expires&Signature"\n`),
    text,
  );
  assert(text.includes("proxy    for podman, skopeo, CRI-O and docker: the same task\n"), text);
  assert(text.includes("cluster  not asked: this daemon works alone"), text);
  const same = await explain(usual.socket, BLOB);
  assert(!same.includes("another task"), same);
});
