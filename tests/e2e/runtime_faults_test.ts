// covers: peer/proxy/content_stream.ts, peer/proxy/direct_reader.ts
/**
 * Container runtimes pull through a daemon whose registry goes wrong, row by
 * row. Each row says what each of them comes to: the daemon heals it, the
 * runtime goes on to the registry itself, or the pull fails.
 */
import { assert, assertEquals } from "@std/assert";
import { createHash } from "node:crypto";
import { taskId } from "../../peer/core/task_id.ts";
import { metaOf } from "../../peer/task/generation.ts";
import { startCluster } from "../testutil/cluster.ts";
import { Containerd } from "../testutil/containerd.ts";
import { type FaultRule, FaultyRegistry } from "../testutil/faulty_registry.ts";
import { makeImage } from "../testutil/image.ts";
import { startLyingHost } from "../testutil/lying_host.ts";
import { podmanPull } from "../testutil/podman.ts";
import { type DaemonProcess, spawnDaemon } from "../testutil/process.ts";
import { hasTools, startRegistry } from "../testutil/registry.ts";
import { Dockerd, type Pulled, registriesConf, skopeoPull, type Way } from "../testutil/runtimes.ts";

const NAME = "registry.test";
/** A registry that refuses connections. */
const AWAY = "away.test";
const IMAGE = makeImage({ scale: 2 });
const AMD64 = IMAGE.images[0]!;
const BLOBS = [AMD64.config, ...AMD64.layers];
const CONTENT = [IMAGE.index, AMD64.manifest, ...BLOBS].map(({ digest }) => digest).sort();
const AT_ONCE = 6;
/** How long the daemon waits for a registry that stalls. */
const IDLE_S = 3;

/** `healed`: the registry itself was not asked by the runtime. `other`: it was, and that helped. */
type Outcome = "healed" | "other" | "fails";
type ClientName = "ctr" | "cri" | "skopeo" | "podman" | "docker";

interface Row {
  readonly name: string;
  readonly registry?: string;
  readonly rule: FaultRule | null;
  /** Of containerd, of skopeo and podman, of docker: that one has no other registry to go to. */
  readonly want: readonly [containerd: Outcome, containers: Outcome, docker: Outcome | null];
}

const healed: Row["want"] = ["healed", "healed", "healed"];

function status(code: number, on: FaultRule["on"], times?: number): FaultRule {
  const fields = code === 429 ? [["retry-after", "1"] as const] : [];
  return { on, fault: { act: "status", status: code, fields }, ...(times === undefined ? {} : { times }) };
}

const ROWS: readonly Row[] = [
  { name: "nothing", rule: null, want: healed },
  { name: "connections refused", registry: AWAY, rule: null, want: ["other", "other", null] },
  {
    name: "manifests: always reset",
    rule: { on: "manifest", fault: { act: "reset" } },
    want: ["other", "other", "fails"],
  },
  ...[401, 403, 404, 408, 500, 503].map((code): Row => ({
    name: `manifests: always ${code}`,
    rule: status(code, "manifest"),
    want: ["other", "other", "fails"],
  })),
  { name: "manifests: 503 once", rule: status(503, "manifest", 1), want: ["other", "other", "healed"] },
  { name: "manifests: 429 once", rule: status(429, "manifest", 1), want: healed },
  { name: "manifests: 408 once", rule: status(408, "manifest", 1), want: ["healed", "other", "healed"] },
  { name: "manifests: late", rule: { on: "manifest", fault: { act: "delay", ms: 1500 } }, want: healed },
  {
    name: "manifests: no digest told",
    rule: { on: "manifest", fault: { act: "fields", drop: ["docker-content-digest"] } },
    want: healed,
  },
  {
    name: "manifests: their first byte wrong",
    rule: { on: "manifest", fault: { act: "wrong", at: "first" } },
    // dockerd has them from the row above.
    want: ["other", "fails", null],
  },
  { name: "blobs: always reset", rule: { on: "blob", fault: { act: "reset" } }, want: ["other", "fails", "fails"] },
  { name: "blobs: reset twice", rule: { on: "blob", fault: { act: "reset" }, times: 2 }, want: healed },
  {
    name: "manifests: type application/json",
    rule: { on: "manifest", fault: { act: "fields", set: [["content-type", "application/json"]] } },
    want: ["fails", "fails", "fails"],
  },
  {
    name: "manifests: no type told",
    rule: { on: "manifest", fault: { act: "fields", drop: ["content-type"] } },
    want: ["fails", "fails", "fails"],
  },
  {
    name: "manifests: another digest told",
    rule: { on: "manifest", fault: { act: "fields", set: [["docker-content-digest", `sha256:${"0".repeat(64)}`]] } },
    // dockerd asks by the digest of what it had before; another one than that it does not have.
    want: ["fails", "healed", null],
  },
  {
    name: "manifests: stalled once",
    rule: { on: "manifest", fault: { act: "stall", after: 100 }, times: 1 },
    // dockerd has them from the row above, and asks for their heads only.
    want: ["healed", "other", null],
  },
  ...[401, 403, 404, 408, 500].map((code): Row => ({
    name: `blobs: always ${code}`,
    rule: status(code, "blob"),
    want: ["other", "fails", "fails"],
  })),
  ...[401, 403, 404, 408, 429, 500, 502, 503, 504].map((code): Row => ({
    name: `blobs: ${code} once`,
    rule: status(code, "blob", 1),
    want: healed,
  })),
  { name: "blobs: 503 five times", rule: status(503, "blob", 5), want: healed },
  { name: "blobs: cut once", rule: { on: "blob", fault: { act: "cut", after: 100_000 }, times: 1 }, want: healed },
  { name: "blobs: every answer cut", rule: { on: "blob", fault: { act: "cut", after: 300_000 } }, want: healed },
  {
    name: "blobs: stalled once",
    rule: { on: "blob", fault: { act: "stall", after: 200_000 }, times: 1 },
    want: healed,
  },
  { name: "blobs: late", rule: { on: "blob", fault: { act: "delay", ms: 1500 }, times: 4 }, want: healed },
  { name: "blobs: no length told", rule: { on: "blob", fault: { act: "chunked" } }, want: healed },
  {
    name: "blobs: told to be gzip's coding",
    rule: { on: "blob", fault: { act: "fields", set: [["content-encoding", "gzip"]] } },
    want: healed,
  },
  { name: "blobs: no ranges", rule: { on: "blob", fault: { act: "whole" } }, want: healed },
  {
    name: "blobs: no digest, no type, wrong ETag",
    rule: {
      on: "blob",
      fault: { act: "fields", drop: ["docker-content-digest", "content-type"], set: [["etag", '"wrong"']] },
    },
    want: healed,
  },
  {
    name: "blobs: first byte wrong",
    rule: { on: "blob", fault: { act: "wrong", at: "first" } },
    want: ["fails", "fails", "fails"],
  },
  {
    // containerd has all but the end, and gets that from the registry itself.
    name: "blobs: last byte wrong",
    rule: { on: "blob", fault: { act: "wrong", at: "last" } },
    want: ["other", "fails", "fails"],
  },
];

interface Stage {
  readonly daemon: DaemonProcess;
  readonly faulty: FaultyRegistry;
  readonly good: FaultyRegistry;
}

async function stage(): Promise<Stage & AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const registry = stack.use(await startRegistry());
  await registry.push(IMAGE, { name: "lab/app", tag: "v1" });
  const faulty = stack.use(new FaultyRegistry(registry.url));
  const good = stack.use(new FaultyRegistry(registry.url));
  const registries = [{ host: NAME, url: faulty.url }, { host: AWAY, url: "http://127.0.0.1:9" }];
  const daemon = stack.use(
    await spawnDaemon({
      config: {
        download: { source: { idleTimeout: `${IDLE_S}s` } },
        proxy: { tcpListen: { port: 0 }, registryMirror: { url: faulty.url, registries } },
      },
    }),
  );
  const owned = stack.move();
  return { daemon, faulty, good, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Runs the rows, some at once. @returns what each came to, and what it should have come to */
async function run(
  { faulty, good, daemon }: Stage,
  { client, rows, pull }: {
    client: ClientName;
    rows: readonly Row[];
    pull: (repository: string, row: Row) => Promise<Pulled>;
  },
): Promise<void> {
  const column = { ctr: 0, cri: 0, skopeo: 1, podman: 1, docker: 2 }[client];
  const found: Record<string, string> = {};
  const wanted: Record<string, string> = {};
  const left = [...rows.entries()].filter(([, { want }]) => want[column] !== null);
  const words: string[] = [];
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [index, row] = next;
      const repository = `lab/${client}-${index}`;
      faulty.set(repository, row.rule);
      const { code, stderr } = await pull(repository, row);
      words.push(`${row.name}: ${stderr.trim().slice(-500)}`);
      found[row.name] = code !== 0 ? "fails" : good.asked(repository) === 0 ? "healed" : "other";
      wanted[row.name] = row.want[column]!;
      if (code !== 0) assert(stderr !== "", `${client} says nothing`);
      if (row.rule !== null) assert(faulty.struck(repository) > 0, `nothing went wrong: ${row.name}`);
      faulty.set(repository, null);
      if (row.registry === undefined) await keepsNothingWrong(daemon, { repository, row });
    }
  }));
  assertEquals(found, wanted, words.join("\n"));
  const unexpected = daemon.log().split("\n").filter((line) => line.includes('"level":"error"'));
  assertEquals(unexpected, []);
}

/** Whatever happened: what the daemon has of the blobs now is right. */
async function keepsNothingWrong(daemon: DaemonProcess, { repository, row }: { repository: string; row: Row }) {
  for (const { digest } of BLOBS) {
    const read = async () => {
      const response = await fetch(`http://${daemon.proxy}/v2/${NAME}/${repository}/blobs/${digest}`);
      const bytes = await response.bytes();
      return [response.status, `sha256:${createHash("sha256").update(bytes).digest("hex")}`];
    };
    // Of a content that nobody read to its end wrong bytes may be here still: they are found out now, and are gone then.
    assertEquals(await read().catch(read), [200, digest], row.name);
  }
}

const hasRegistry = hasTools(["docker-registry", "skopeo"]);
const hasContainerd = hasTools(["containerd", "ctr"]) && Deno.uid() === 0;

async function byCri(node: Containerd, reference: string): Promise<Pulled> {
  await using cri = node.cri();
  const { code, message } = await cri.pullImage(reference);
  return { code, stderr: message };
}

for (
  const [client, pull] of [
    ["ctr", (node: Containerd, reference: string): Promise<Pulled> => node.fetch(reference)],
    ["cri", byCri],
  ] as const
) {
  Deno.test({
    name: `containerd pulls by ${client} through whatever goes wrong at the registry`,
    ignore: !hasRegistry || !hasContainerd,
    async fn() {
      await using made = await stage();
      await run(made, {
        client,
        rows: ROWS,
        pull: async (repository, { registry = NAME }) => {
          const hosts = { registry, server: made.good.url, mirror: `http://${made.daemon.proxy}` };
          await using node = await Containerd.start(hosts);
          const pulled = await pull(node, `${registry}/${repository}:v1`);
          if (pulled.code === 0) assertEquals(await node.content(), CONTENT);
          return pulled;
        },
      });
    },
  });
}

function podman(folder: string, reference: string, way: Way): Promise<Pulled> {
  return podmanPull(`${way.registry}/${reference}`, { folder, registries: registriesConf(way), credentials: {} });
}

for (const [client, pull] of [["skopeo", skopeoPull], ["podman", podman]] as const) {
  Deno.test({
    name: `${client} pulls through whatever goes wrong at the registry`,
    ignore: !hasRegistry || !hasTools([client]) || Deno.uid() !== 0,
    async fn() {
      await using made = await stage();
      await run(made, {
        client,
        rows: ROWS,
        pull: async (repository, { registry = NAME }) => {
          // podman takes no runroot of more than 50 characters.
          const folder = await Deno.makeTempDir({ prefix: "lw" });
          const way = { registry, mirror: made.daemon.proxy!, origin: made.good.host };
          try {
            return await pull(folder, `${repository}:v1`, way);
          } finally {
            await Deno.remove(folder, { recursive: true });
          }
        },
      });
    },
  });
}

Deno.test({
  name: "dockerd pulls through whatever goes wrong at the registry",
  ignore: !hasRegistry || !hasContainerd || !hasTools(["dockerd", "docker"]),
  async fn() {
    await using made = await stage();
    await using node = await Containerd.start({
      registry: NAME,
      server: made.good.url,
      mirror: `http://${made.daemon.proxy}`,
    });
    await using stack = new AsyncDisposableStack();
    const idle: Dockerd[] = [];
    // One for each pull at once: within one a layer is fetched once for all the images that have it.
    for (let index = 0; index < AT_ONCE; index++) {
      const started = await Dockerd.start({
        folder: `${made.daemon.folder}/docker-${index}`,
        mirror: made.daemon.proxy!,
        containerd: `${node.folder}/c.sock`,
      });
      if ("reason" in started) {
        console.log(`skipped: ${started.reason}`);
        return;
      }
      idle.push(stack.use(started.dockerd));
    }
    await run(made, {
      client: "docker",
      rows: ROWS,
      pull: async (repository) => {
        const dockerd = idle.pop()!;
        try {
          return await dockerd.pull(`${repository}:v1`);
        } finally {
          idle.push(dockerd);
        }
      },
    });
  },
});

for (const fault of ["wrong bytes", "silence", "death"] as const) {
  Deno.test({
    name: `containerd pulls through a daemon whose neighbour answers with ${fault}`,
    ignore: !hasRegistry || !hasContainerd,
    async fn() {
      await using registry = await startRegistry();
      await registry.push(IMAGE, { name: "lab/app", tag: "v1" });
      const registryMirror = { url: registry.url, registries: [{ host: NAME, url: registry.url }] };
      const config = { proxy: { tcpListen: { port: 0 }, registryMirror }, upload: { rateLimit: "2Mi" } };
      await using cluster = await startCluster({ daemons: 2, daemon: { config } });
      const [neighbour, daemon] = cluster.daemons;
      const largest = BLOBS.reduce((a, b) => a.bytes.length > b.bytes.length ? a : b);
      const url = `${registry.url}/v2/lab/app/blobs/${largest.digest}`;
      // An honest one has the blob, so that the scheduler knows its digests; slowly, so that others are asked, too.
      const response = await fetch(`http://${neighbour!.proxy}/v2/${NAME}/lab/app/blobs/${largest.digest}`);
      assertEquals((await response.bytes()).length, largest.bytes.length);
      const facts = { url, contentLength: largest.bytes.length, ranges: true, version: {} };
      const task = { task_id: taskId(url), url, tag: "", filter: "", meta: metaOf(facts, "") };
      await using liar = fault === "death"
        ? null
        : await startLyingHost(cluster.manager.http, task, { stalls: fault === "silence" });
      const mirror = `http://${daemon!.proxy}`;
      // Nobody stands behind the mirror: the daemon alone must heal it.
      await using node = await Containerd.start({ registry: NAME, server: "http://127.0.0.1:9", mirror });
      const pulling = node.fetch(`${NAME}/lab/app:v1`);
      if (fault === "death") {
        let isOver = false;
        pulling.then(() => isOver = true);
        const isUnderWay = () => registry.accessLog().filter((line) => line.includes("/blobs/")).length > 8;
        while (!isOver && !isUnderWay()) await new Promise((resolve) => setTimeout(resolve, 10));
        await neighbour!.kill();
      }
      const { code, stderr } = await pulling;
      assertEquals(code, 0, stderr + daemon!.log());
      assertEquals(await node.content(), CONTENT);
      if (liar !== null) assert(liar.reads > 0, "the liar was never asked: the test shows nothing");
    },
  });
}
