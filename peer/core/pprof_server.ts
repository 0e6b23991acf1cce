/**
 * Profiles of this process over HTTP on loopback, as Go's net/http/pprof gives
 * them: `/debug/pprof/profile?seconds=30` (CPU) and `/debug/pprof/heap` (live
 * objects by where they were allocated). Loaded only with `--pprof-port`.
 *
 * Keeps: one CPU profile at a time, 1 to 120 s; when the process stops, a
 * profile that runs ends there and is still sent.
 */
import type { Session } from "node:inspector";
import { LacewingError } from "./errors.ts";
import { type CpuProfile, encodeCpuProfile, encodeHeapProfile, type HeapNode } from "./profile.ts";

export interface PprofServer extends AsyncDisposable {
  /** `http://127.0.0.1:PORT/debug/pprof/` */
  readonly url: string;
}

const SECONDS_DEFAULT = 30;
const SECONDS_MAX = 120;
/** V8's own: 1,000 samples a second. */
const CPU_INTERVAL_MICROS = 1_000;
/** Go's own: one sample for each 512 KiB allocated. */
const HEAP_INTERVAL_LENGTH = 512 * 1024;
const STOP_MS_MAX = 1_000;

/**
 * Begins to listen, and to sample allocations.
 *
 * @param port 0 takes a free one
 * @throws {LacewingError} `network` when the port is taken
 */
export async function startPprofServer(port: number): Promise<PprofServer> {
  const inspector = await Inspector.open();
  try {
    const profiler = new Profiler(inspector);
    const abort = new AbortController();
    const server = Deno.serve(
      { hostname: "127.0.0.1", port, signal: abort.signal, onListen() {} },
      (request) => profiler.answer(request),
    );
    return {
      url: `http://127.0.0.1:${server.addr.port}/debug/pprof/`,
      async [Symbol.asyncDispose]() {
        profiler.stop();
        const timer = setTimeout(() => abort.abort(), STOP_MS_MAX);
        await server.shutdown();
        clearTimeout(timer);
        inspector[Symbol.dispose]();
      },
    };
  } catch (cause) {
    inspector[Symbol.dispose]();
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new LacewingError("network", `Cannot serve profiles on 127.0.0.1:${port}: ${reason}; want a free port`, {
      cause,
    });
  }
}

/** V8's inspector in this very process. */
class Inspector implements Disposable {
  private constructor(private readonly session: Session) {}

  static async open(): Promise<Inspector> {
    const { Session } = await import("node:inspector");
    const session = new Session();
    session.connect();
    const inspector = new Inspector(session);
    await inspector.post("Profiler.enable");
    await inspector.post("Profiler.setSamplingInterval", { interval: CPU_INTERVAL_MICROS });
    await inspector.post("HeapProfiler.startSampling", { samplingInterval: HEAP_INTERVAL_LENGTH });
    return inspector;
  }

  post<T>(method: string, params: Record<string, unknown> = {}): Promise<T> {
    return new Promise((resolve, reject) => {
      this.session.post(method, params, (error, result) => error === null ? resolve(result as T) : reject(error));
    });
  }

  [Symbol.dispose](): void {
    this.session.disconnect();
  }
}

class Profiler {
  readonly #stop = new AbortController();
  #isBusy = false;

  constructor(private readonly inspector: Inspector) {}

  /** Ends a profile that runs. */
  stop(): void {
    this.#stop.abort();
  }

  async answer(request: Request): Promise<Response> {
    const { pathname, searchParams, hostname } = new URL(request.url);
    // A page that resolves its own name to loopback must not read what runs here.
    if (hostname !== "127.0.0.1" && hostname !== "localhost") return text(403, "Only for this machine");
    if (request.method !== "GET") return text(405, "Want GET", { allow: "GET" });
    switch (pathname) {
      case "/debug/pprof/":
        return text(200, "profile?seconds=N  CPU, 1 to 120 s (default 30)\nheap               live objects");
      case "/debug/pprof/profile":
        return await this.#cpu(searchParams.get("seconds") ?? String(SECONDS_DEFAULT), request.signal);
      case "/debug/pprof/heap":
        return await this.#heap();
      default:
        return text(404, "Want /debug/pprof/profile?seconds=N or /debug/pprof/heap");
    }
  }

  async #cpu(wanted: string, signal: AbortSignal): Promise<Response> {
    const seconds = /^\d{1,4}$/.test(wanted) ? Number(wanted) : NaN;
    if (!(seconds >= 1 && seconds <= SECONDS_MAX)) {
      return text(400, `Cannot profile for seconds=${JSON.stringify(wanted.slice(0, 20))}: want 1 to ${SECONDS_MAX}`);
    }
    if (this.#isBusy) return text(409, "Cannot profile: another profile is being taken, try again when it is done");
    this.#isBusy = true;
    try {
      await this.inspector.post("Profiler.start");
      await wait(seconds * 1000, AbortSignal.any([signal, this.#stop.signal]));
      const { profile } = await this.inspector.post<{ profile: CpuProfile }>("Profiler.stop");
      return pprof("profile", encodeCpuProfile(profile, { intervalMicros: CPU_INTERVAL_MICROS, nowMs: Date.now() }));
    } finally {
      this.#isBusy = false;
    }
  }

  async #heap(): Promise<Response> {
    const { profile } = await this.inspector.post<{ profile: { head: HeapNode } }>("HeapProfiler.getSamplingProfile");
    const comments = Object.entries(Deno.memoryUsage()).map(([name, bytes]) => `${name} ${bytes} bytes`);
    const options = { intervalLength: HEAP_INTERVAL_LENGTH, nowMs: Date.now(), comments };
    return pprof("heap", encodeHeapProfile(profile.head, options));
  }
}

/** Also ends, without an error, when the signal is aborted. */
function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done, { once: true });
  });
}

function pprof(name: string, profile: Uint8Array): Response {
  const body = new Blob([profile as Uint8Array<ArrayBuffer>]).stream().pipeThrough(new CompressionStream("gzip"));
  return new Response(body, {
    headers: {
      "content-type": "application/octet-stream",
      "content-disposition": `attachment; filename="${name}.pb.gz"`,
      "x-content-type-options": "nosniff",
    },
  });
}

function text(status: number, message: string, headers: Record<string, string> = {}): Response {
  return new Response(`${message}\n`, { status, headers: { "content-type": "text/plain; charset=utf-8", ...headers } });
}
