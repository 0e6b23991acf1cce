/**
 * Preheat jobs for images that go wrong: each names URL and reason, for the
 * tasks concerned only; and no secret of a job is shown or written anywhere.
 */
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { Buffer } from "node:buffer";
import { walkSync } from "../testutil/files.ts";
import { type Cluster, jobEnded, startCluster } from "../testutil/cluster.ts";
import { makeImage } from "../testutil/image.ts";
import { type SmallRegistryOptions, startSmallRegistry } from "../testutil/small_registry.ts";

const NAME = "lab/app";
const IMAGE = makeImage({ scale: 0.05 });
const PARTS = 1 + IMAGE.manifests.size + IMAGE.blobs.size;
const LAYER = IMAGE.images[0]!.layers[3]!;
const SECRET = { username: "robot", password: "pa55-w0rd-of-the-robot" };

function startRegistry(options: SmallRegistryOptions = {}) {
  const registry = startSmallRegistry(options);
  registry.add(IMAGE, { name: NAME, tag: "v1" });
  return registry;
}

/** A cluster whose manager tries everything once. */
function startImpatient(): Promise<Cluster> {
  return startCluster({ daemons: 1, seeds: 1, manager: { config: { job: { retries: 0 } } } });
}

// deno-lint-ignore no-explicit-any
async function preheat({ manager }: Cluster, args: Record<string, unknown>): Promise<any> {
  const body = { type: "preheat", args: { type: "image", platform: "all", ...args } };
  const answer = await manager.api("POST", "/api/v1/jobs", body);
  assertEquals(answer.status, 200, JSON.stringify(answer.body));
  return await jobEnded(manager, answer.body.id);
}

interface Failure {
  claim: string;
  registry?: SmallRegistryOptions;
  tag?: string;
  args?: Record<string, unknown>;
  isDown?: boolean;
  code: string;
  /** Words of the reason. */
  words: string[];
}

const FAILURES: Failure[] = [
  { claim: "a wrong tag", tag: "v2", code: "source_not_found", words: ["MANIFEST_UNKNOWN", "404"] },
  { claim: "a registry that is down", isDown: true, code: "network", words: ["refused"] },
  { claim: "no password where one is wanted", registry: { auth: "basic" }, code: "source_refused", words: ["none"] },
  {
    claim: "a wrong password with Basic",
    registry: { auth: "basic" },
    args: SECRET,
    code: "source_refused",
    words: ["robot", "401"],
  },
  {
    claim: "a wrong password with a token server",
    registry: { auth: "token" },
    args: SECRET,
    code: "source_refused",
    words: ["robot", "token"],
  },
  {
    claim: "a platform that is not there",
    args: { platform: "linux/s390x" },
    code: "source_not_found",
    words: ["s390x"],
  },
];

Deno.test("an image that cannot be read fails with one task that names URL and reason", async (test) => {
  await using cluster = await startImpatient();
  for (const { claim, registry: options, tag = "v1", args, isDown = false, code, words } of FAILURES) {
    await test.step(claim, async () => {
      await using registry = startRegistry(options);
      if (isDown) await registry.stop();
      const url = registry.manifestUrl(NAME, tag);
      const job = await preheat(cluster, { url, ...args });
      assertEquals([job.status, job.result.tasks], ["FAILURE", { total: 1, done: 0, failed: 1 }]);
      const [{ state, tasks: [task] }] = job.result.clusters;
      assertEquals([state, task.url, task.state, task.error.code], ["FAILURE", url, "FAILURE", code]);
      for (const word of [url, ...words]) assertStringIncludes(task.error.message, word);
      assert(!JSON.stringify(job).includes(SECRET.password));
    });
  }
});

Deno.test("a layer that answers 500 fails alone, first in the list, and the rest is preheated", async () => {
  await using registry = startRegistry();
  await using cluster = await startImpatient();
  registry.fault(LAYER.digest, { status: 500 });
  const job = await preheat(cluster, { url: registry.manifestUrl(NAME, "v1") });
  assertEquals([job.status, job.result.tasks], ["FAILURE", { total: PARTS, done: PARTS - 1, failed: 1 }]);
  const [failed, ...others] = job.result.clusters[0].tasks;
  const url = registry.blobUrl(NAME, LAYER.digest);
  assertEquals([failed.url, failed.digest, failed.state, failed.error.code], [
    url,
    LAYER.digest,
    "FAILURE",
    "source_failed",
  ]);
  for (const word of [url, "500", "seed-0"]) assertStringIncludes(failed.error.message, word);
  assertEquals(new Set(others.map(({ state }: { state: string }) => state)), new Set(["SUCCESS"]));
});

Deno.test("a layer that answers 503 for a moment costs a retry and nothing else", async () => {
  await using registry = startRegistry();
  await using cluster = await startCluster({ daemons: 1 });
  registry.fault(LAYER.digest, { status: 503, times: 2, headers: { "retry-after": "0" } });
  const job = await preheat(cluster, { url: registry.manifestUrl(NAME, "v1") });
  assertEquals([job.status, job.result.tasks], ["SUCCESS", { total: PARTS, done: PARTS, failed: 0 }]);
});

const SIGN_INS: SmallRegistryOptions[] = [{ auth: "basic" }, { auth: "token" }];
for (const options of SIGN_INS) {
  Deno.test(`no answer, log or file shows the secrets of a job that signs in by ${options.auth}`, async () => {
    await using registry = startRegistry({ ...options, ...SECRET });
    const verbose = { args: ["--verbose"] };
    await using cluster = await startCluster({ daemons: 1, seeds: 1, manager: verbose, daemon: verbose });
    const url = registry.manifestUrl(NAME, "v1");
    const header = "header-value-of-the-robot";
    const args = { url, ...SECRET, headers: { "X-Api-Key": header } };
    const job = await preheat(cluster, args);
    assertEquals(job.status, "SUCCESS", JSON.stringify(job.result));
    // One that fails on the hosts, whose messages travel further.
    registry.fault(LAYER.digest, { status: 403 });
    assertEquals((await preheat(cluster, { ...args, tag: "again" })).status, "FAILURE");

    const authorizations = registry.requests.flatMap(({ authorization }) => authorization?.split(" ")[1] ?? []);
    assert(new Set(authorizations).size > 0, "nobody signed in");
    const { username, password } = SECRET;
    const basic = Buffer.from(`${username}:${password}`).toString("base64");
    const secrets = [...new Set([password, header, basic, ...authorizations])];
    const texts: [where: string, text: string][] = [];
    for (const path of ["", "/1", "/2", "/1/tasks?per_page=100", "/2/tasks?per_page=100", "/2/events"]) {
      texts.push([path, await (await fetch(`${cluster.manager.http}/api/v1/jobs${path}`)).text()]);
    }
    for (const path of ["/api/v1/tasks?per_page=100", "/api/v1/peers", "/metrics"]) {
      texts.push([path, await (await fetch(cluster.manager.http + path)).text()]);
    }
    for (const process of [cluster.manager, ...cluster.seeds, ...cluster.daemons]) {
      await process.stop();
      texts.push([`the log of ${process.folder}`, process.log()]);
      for (const file of walkSync(process.folder)) {
        texts.push([file, Buffer.from(await Deno.readFile(file)).toString("latin1")]);
      }
    }
    assertStringIncludes(texts[1]![1], '"password":"***"');
    const looked = texts.filter(([, text]) => text.includes(url)).map(([where]) => where).join(" ");
    for (const place of ["/manager.db", "/pieces.db", "the log of"]) assertStringIncludes(looked, place);
    const found = texts.flatMap(([where, text]) =>
      secrets.filter((secret) => text.includes(secret)).map((secret) => `${secret} in ${where}`)
    );
    assertEquals(found, []);
  });
}
