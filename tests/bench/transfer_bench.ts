/**
 * Ways of sending pieces of a file from the page cache, of receiving them into
 * a file, and of taking their SHA-256: each in a process of its own, one
 * connection, with CPU seconds per GB. The product uses raw connections
 * (`peer/transfer/upload_connection.ts`, `peer/transfer/piece_connection.ts`);
 * the other ways live here only. nginx sends to the receiving ways; curl and nginx
 * are measured in the same run.
 */
import { createHash } from "node:crypto";
import { formatBytes } from "../../peer/core/units.ts";
import { median } from "./bound.ts";
import { BenchProcess } from "./processes.ts";
import { table } from "./report.ts";
import { piecesOf } from "./transfer_pieces.ts";
import { DIGESTS, RECEIVE_WAYS } from "./transfer_receive.ts";
import { SEND_WAYS } from "./transfer_send.ts";

const GB = 1e9;
/** What drains the sending ways: the cheapest receiver there is, the same for all. */
const DRAIN = "Deno.connect, write at once";
const PRODUCT_SENDS = ["Deno.listen, async read"];
const PRODUCT_RECEIVES = ["Deno.connect, async write"];
/** The ways that digests are compared with. */
const DIGESTED = ["Deno.connect, write at once", "Deno.connect, async write", "node:net onread"];

export interface WayResult {
  readonly part: "send" | "receive";
  readonly way: string;
  readonly digest: string;
  /** CPU seconds per GB of this end alone. */
  readonly cpuSecondsPerGb: number;
  /** Bytes per second of both ends. */
  readonly rate: number;
  readonly isRight: boolean;
}

export interface TransferOptions {
  readonly size: number;
  /** Only what the product does, and what nginx and curl do. */
  readonly small: boolean;
  readonly rounds: number;
  readonly folder: string;
}

/** Every way `rounds` times in turn; medians. */
export async function runTransfer({ size, rounds, small, folder }: TransferOptions): Promise<WayResult[]> {
  await Deno.mkdir(folder, { recursive: true });
  const content = await makeContent(`${folder}/content`, size);
  await using nginx = await startNginx(folder);
  const results: WayResult[] = [];
  const bench = new TransferBench({ size, folder, content, nginx });
  for (let round = 0; round < rounds; round++) {
    for (const way of small ? PRODUCT_SENDS : Object.keys(SEND_WAYS)) results.push(await bench.send(way));
    results.push(await bench.nginxSends());
    for (const way of small ? [] : Object.keys(RECEIVE_WAYS)) results.push(await bench.receive(way, "none"));
    for (const way of small ? PRODUCT_RECEIVES : DIGESTED) {
      for (const digest of small ? ["main"] : DIGESTS.slice(1)) results.push(await bench.receive(way, digest));
    }
    results.push(await bench.curlReceives());
  }
  const groups = Map.groupBy(results, ({ part, way, digest }) => `${part} ${way} ${digest}`);
  return [...groups.values()].map((group) => ({
    ...group[0]!,
    cpuSecondsPerGb: median(group.map((it) => it.cpuSecondsPerGb)),
    rate: median(group.map((it) => it.rate)),
    isRight: group.every((it) => it.isRight),
  }));
}

/** Each part beside its peer: nginx, and curl without a digest. */
export function transferTable(results: readonly WayResult[]): string {
  const lines = (["send", "receive"] as const).map((part) => {
    const own = results.filter((it) => it.part === part);
    const peer = own.find(({ way }) => way === (part === "send" ? "nginx, sendfile" : "curl"));
    const rows = own.map(({ way, digest, cpuSecondsPerGb, rate, isRight }) => [
      way,
      part === "send" ? "" : digest,
      cpuSecondsPerGb.toFixed(2),
      `${(cpuSecondsPerGb / (peer?.cpuSecondsPerGb ?? NaN)).toFixed(2)}x`,
      `${formatBytes(Math.round(rate))}/s`,
      `${(rate / (peer?.rate ?? NaN)).toFixed(2)}x`,
      isRight ? "right" : "WRONG",
    ]);
    const title = part === "send" ? "sending from the page cache" : "receiving into a file from nginx";
    return table([[title, part === "send" ? "" : "SHA-256", "CPU s/GB", "", "rate", "", "bytes"], ...rows]);
  });
  return [
    "Transfer: one connection, 4 MiB pieces, medians; CPU of the one end, x is nginx's or curl's",
    ...lines.flat(),
    "",
  ]
    .join("\n");
}

interface Content {
  readonly path: string;
  /** SHA-256 over the digests of all pieces. */
  readonly digest: string;
}

class TransferBench {
  constructor(
    private readonly it: {
      size: number;
      folder: string;
      content: Content;
      nginx: { process: BenchProcess; url: string };
    },
  ) {}

  async send(way: string): Promise<WayResult> {
    const { content } = this.it;
    await using sender = deno("transfer_send.ts", [way, content.path]);
    const port = (await sender.line((line) => line.startsWith("listening "))).split(" ")[1];
    return await this.#drain(way, sender, `http://127.0.0.1:${port}/content`);
  }

  nginxSends(): Promise<WayResult> {
    return this.#drain("nginx, sendfile", this.it.nginx.process, this.it.nginx.url);
  }

  async #drain(way: string, sender: BenchProcess, url: string): Promise<WayResult> {
    const { size, content } = this.it;
    await using drain = deno("transfer_receive.ts", [DRAIN, "main", url, String(size), "-"]);
    const { seconds, cpuSeconds, found } = await measured(drain, sender);
    return {
      part: "send",
      way,
      digest: "",
      cpuSecondsPerGb: cpuSeconds / (size / GB),
      rate: size / seconds,
      isRight: found === content.digest,
    };
  }

  async receive(way: string, digest: string): Promise<WayResult> {
    const { size, folder, content, nginx } = this.it;
    const path = `${folder}/received`;
    await using receiver = deno("transfer_receive.ts", [way, digest, nginx.url, String(size), path]);
    const { seconds, cpuSeconds, found } = await measured(receiver, receiver);
    const isRight = digest === "none" || found === content.digest;
    const same = await digestOf(path, size) === content.digest;
    await Deno.remove(path);
    const cpuSecondsPerGb = cpuSeconds / (size / GB);
    return { part: "receive", way, digest, cpuSecondsPerGb, rate: size / seconds, isRight: isRight && same };
  }

  async curlReceives(): Promise<WayResult> {
    const { size, folder, content, nginx } = this.it;
    const path = `${folder}/received`;
    const timed = ["bash", "-c", 'TIMEFORMAT="cpu %U %S %R"; time "$@"', "bash"];
    await using curl = new BenchProcess("curl", [...timed, "curl", "-sSf", "-o", path, nginx.url]);
    await curl.ended;
    const [, user = 0, system = 0, real = 0] = /^cpu ([\d.]+) ([\d.]+) ([\d.]+)$/m.exec(curl.output()) ?? [];
    const isRight = await digestOf(path, size) === content.digest;
    await Deno.remove(path);
    const cpuSecondsPerGb = (Number(user) + Number(system)) / (size / GB);
    return { part: "receive", way: "curl", digest: "none", cpuSecondsPerGb, rate: size / Number(real), isRight };
  }
}

/** Lets a receiver begin. @returns what `whose` process spent meanwhile */
async function measured(receiver: BenchProcess, whose: BenchProcess) {
  await receiver.line((line) => line === "ready");
  const before = whose.cpuSeconds();
  const beganMs = performance.now();
  await receiver.say("go");
  const found = (await receiver.line((line) => line.startsWith("done"))).slice("done ".length);
  return { seconds: (performance.now() - beganMs) / 1000, cpuSeconds: whose.cpuSeconds() - before, found };
}

function deno(entry: string, args: readonly string[]): BenchProcess {
  const path = new URL(entry, import.meta.url).pathname;
  return new BenchProcess(entry, [Deno.execPath(), "run", "-A", "--no-config", "--no-lock", path, ...args]);
}

async function makeContent(path: string, size: number): Promise<Content> {
  using file = await Deno.open(path, { write: true, create: true });
  const chunk = new Uint8Array(64 * 1024);
  for (let at = 0; at < size; at += chunk.length) {
    crypto.getRandomValues(chunk);
    await file.write(chunk.subarray(0, size - at));
  }
  return { path, digest: await digestOf(path, size) };
}

/** SHA-256 over the digests of all pieces. */
async function digestOf(path: string, size: number): Promise<string> {
  using file = await Deno.open(path);
  const all = createHash("sha256");
  for (const { length } of piecesOf(size)) {
    const bytes = new Uint8Array(length);
    for (let at = 0; at < length;) at += await file.read(bytes.subarray(at)) ?? length;
    all.update(createHash("sha256").update(bytes).digest("hex"));
  }
  return all.digest("hex");
}

async function startNginx(folder: string) {
  const port = freePort();
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  await Deno.writeTextFile(
    `${folder}/nginx.conf`,
    `daemon off; master_process off; user root; pid ${folder}/nginx.pid; events {}
http {
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000;
  ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join(" ")}
  server { listen 127.0.0.1:${port}; root ${folder}; }
}
`,
  );
  const process = new BenchProcess("nginx", ["nginx", "-c", `${folder}/nginx.conf`, "-e", `${folder}/error.log`]);
  const url = `http://127.0.0.1:${port}/content`;
  while (!process.hasEnded && !await fetch(url, { method: "HEAD" }).then((it) => it.ok, () => false));
  return { process, url, [Symbol.asyncDispose]: () => process[Symbol.asyncDispose]() };
}

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}
