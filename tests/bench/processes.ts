/**
 * Processes of a bench: started on a host of the network, watched for their
 * lines, measured through /proc, and gone when disposed of.
 */
import { TextLineStream } from "@std/streams/text-line-stream";

const OUTPUT_LINES_MAX = 100_000;
/** Ticks a second of the times in /proc/PID/stat; 100 on every Linux that Deno runs on. */
const TICKS = 100;

interface Waiter {
  readonly matches: (line: string) => boolean;
  readonly found: (line: string) => void;
  readonly lost: (error: Error) => void;
}

export class BenchProcess implements AsyncDisposable {
  readonly ended: Promise<number>;
  readonly #process: Deno.ChildProcess;
  readonly #lines: string[] = [];
  readonly #waiters = new Set<Waiter>();
  readonly #writer: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;
  #hasEnded = false;
  #lastCpuSeconds = 0;
  #lastRssMaxBytes = 0;

  constructor(readonly name: string, [command, ...args]: readonly string[], cwd?: string) {
    this.#process = new Deno.Command(command!, {
      args,
      env: { DENO_NO_UPDATE_CHECK: "1" },
      ...(cwd === undefined ? {} : { cwd }),
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#writer = this.#process.stdin.getWriter();
    this.ended = this.#run();
  }

  get pid(): number {
    return this.#process.pid;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  output(): string {
    return this.#lines.join("\n");
  }

  /** The first line, past or to come, that matches; rejects when the process ends without. */
  line(matches: (line: string) => boolean): Promise<string> {
    const past = this.#lines.find(matches);
    if (past !== undefined) return Promise.resolve(past);
    return new Promise((found, lost) => {
      if (this.#hasEnded) return lost(this.#ending());
      this.#waiters.add({ matches, found, lost });
    });
  }

  async say(line: string): Promise<void> {
    await this.#writer.write(new TextEncoder().encode(line + "\n"));
  }

  /** User and system time so far; after its end what was read last. */
  cpuSeconds(): number {
    this.sample();
    return this.#lastCpuSeconds;
  }

  /** The most memory that it has held; after its end what was read last. */
  rssMaxBytes(): number {
    this.sample();
    return this.#lastRssMaxBytes;
  }

  /** Reads its times and memory, for when it has ended. */
  sample(): void {
    if (this.#hasEnded) return;
    try {
      const fields = Deno.readTextFileSync(`/proc/${this.pid}/stat`).split(") ")[1]!.split(" ");
      this.#lastCpuSeconds = (Number(fields[11]) + Number(fields[12])) / TICKS;
      const status = Deno.readTextFileSync(`/proc/${this.pid}/status`);
      this.#lastRssMaxBytes = Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024;
    } catch {
      // It ends just now.
    }
  }

  async kill(signal: Deno.Signal = "SIGKILL"): Promise<void> {
    this.sample();
    try {
      this.#process.kill(signal);
    } catch {
      // It has ended by itself.
    }
    await this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  async #run(): Promise<number> {
    const [status] = await Promise.all([
      this.#process.status,
      this.#collect(this.#process.stdout),
      this.#collect(this.#process.stderr),
    ]);
    this.#hasEnded = true;
    await this.#writer.close().catch(() => {});
    for (const waiter of this.#waiters) waiter.lost(this.#ending());
    this.#waiters.clear();
    return status.code;
  }

  async #collect(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
    for await (const line of stream.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream())) {
      if (this.#lines.length < OUTPUT_LINES_MAX) this.#lines.push(line);
      for (const waiter of this.#waiters) {
        if (!waiter.matches(line)) continue;
        this.#waiters.delete(waiter);
        waiter.found(line);
      }
    }
  }

  #ending(): Error {
    return new Error(`${this.name} ended before the line came; it wrote:\n${this.output().slice(-4000)}`);
  }
}

/** Busy share of each core since the sampler was made. */
export class CpuSampler {
  readonly #from = readCores();

  /** Busy share of the busiest core, and of all together, 0 to 1. */
  read(): { busiest: number; all: number } {
    const shares = readCores().map(({ busy, total }, index) => {
      const from = this.#from[index] ?? { busy: 0, total: 0 };
      return { busy: busy - from.busy, total: Math.max(1, total - from.total) };
    });
    return {
      busiest: Math.max(...shares.map(({ busy, total }) => busy / total)),
      all: shares.reduce((sum, { busy }) => sum + busy, 0) / shares.reduce((sum, { total }) => sum + total, 0),
    };
  }
}

function readCores(): { busy: number; total: number }[] {
  return Deno.readTextFileSync("/proc/stat").split("\n").filter((line) => /^cpu\d/.test(line)).map((line) => {
    const ticks = line.split(/\s+/).slice(1, 9).map(Number);
    const total = ticks.reduce((sum, value) => sum + value, 0);
    // idle and iowait
    return { busy: total - ticks[3]! - ticks[4]!, total };
  });
}
