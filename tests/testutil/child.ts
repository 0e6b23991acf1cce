/**
 * One child process of a test: collects what it writes, lets the test wait for
 * a line, and is gone with all its pipes when `ended` resolves.
 */
import { TextLineStream } from "@std/streams/text-line-stream";

export interface ChildResult {
  /** Exit code; 128 + n after signal n. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ChildOptions {
  /** Program that is run; default: the `deno` of the tests. */
  command?: string;
  env?: Record<string, string>;
  cwd?: string;
}

/** The bound of what is kept of one process, in characters. */
const OUTPUT_LENGTH_MAX = 32 * 1024 * 1024;

interface Waiter {
  matches: (line: string) => boolean;
  found: (line: string) => void;
  lost: (error: Error) => void;
}

export class Child {
  readonly ended: Promise<ChildResult>;
  readonly #process: Deno.ChildProcess;
  readonly #lines: string[] = [];
  readonly #waiters = new Set<Waiter>();
  #hasEnded = false;

  constructor(args: readonly string[], { command = Deno.execPath(), env = {}, cwd }: ChildOptions = {}) {
    this.#process = new Deno.Command(command, {
      args: [...args],
      env: { DENO_NO_UPDATE_CHECK: "1", ...env },
      ...(cwd === undefined ? {} : { cwd }),
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.ended = this.#run();
  }

  get pid(): number {
    return this.#process.pid;
  }

  output(): string {
    return this.#lines.map((line) => line + "\n").join("");
  }

  kill(signal: Deno.Signal): void {
    if (!this.#hasEnded) this.#process.kill(signal);
  }

  /** The first line, past or to come, that matches; rejects with all output when the process ends without. */
  line(matches: (line: string) => boolean): Promise<string> {
    const past = this.#lines.find(matches);
    if (past !== undefined) return Promise.resolve(past);
    return new Promise((found, lost) => {
      if (this.#hasEnded) return lost(this.#ending());
      this.#waiters.add({ matches, found, lost });
    });
  }

  async #run(): Promise<ChildResult> {
    const [stdout, stderr, status] = await Promise.all([
      this.#collect(this.#process.stdout),
      this.#collect(this.#process.stderr),
      this.#process.status,
    ]);
    this.#hasEnded = true;
    for (const waiter of this.#waiters) waiter.lost(this.#ending());
    this.#waiters.clear();
    return { code: status.code, stdout, stderr };
  }

  async #collect(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<string> {
    const own: string[] = [];
    let length = 0;
    for await (const line of stream.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream())) {
      length += line.length;
      if (length > OUTPUT_LENGTH_MAX) continue;
      own.push(line);
      this.#lines.push(line);
      for (const waiter of this.#waiters) {
        if (!waiter.matches(line)) continue;
        this.#waiters.delete(waiter);
        waiter.found(line);
      }
    }
    return own.map((line) => line + "\n").join("");
  }

  #ending(): Error {
    return new Error(`the process ended before the line came; it wrote:\n${this.output().slice(-8000)}`);
  }
}

/** Runs a program with these arguments to its end; an aborted signal stops it with SIGINT, as a user does. */
export async function runToEnd(
  args: readonly string[],
  { signal, ...options }: ChildOptions & { signal?: AbortSignal } = {},
): Promise<ChildResult> {
  const child = new Child(args, options);
  const onAbort = () => child.kill("SIGINT");
  signal?.addEventListener("abort", onAbort, { once: true });
  const result = await child.ended;
  signal?.removeEventListener("abort", onAbort);
  return result;
}

/** Runs any program to its end, with the bytes it wrote to stdout. */
export async function runBytes(
  command: string,
  { args, ...options }: ChildOptions & { args: readonly string[] },
): Promise<{ code: number; stdout: Uint8Array; stderr: string }> {
  const { code, stdout, stderr } = await new Deno.Command(command, {
    args: [...args],
    ...options,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).output();
  return { code, stdout, stderr: new TextDecoder().decode(stderr) };
}

/** Stops a process that is nobody's child any more, and waits until it is gone. */
export async function endProcess(pid: number): Promise<void> {
  try {
    Deno.kill(pid, "SIGTERM");
    while (!(await Deno.readTextFile(`/proc/${pid}/stat`)).includes(") Z ")) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  } catch {
    // It is gone.
  }
}
