/**
 * The daemon's health port: `/healthz` says that it serves, `/metrics` gives
 * counters to Prometheus.
 */
import { Gauge, Registry } from "prom-client";
import { formatHostPort } from "./transfer/connection.ts";
import { LacewingError } from "./core/errors.ts";

/** Figures read at each scrape; names without the `lacewing_daemon_` prefix. */
export type Figures = () => Record<string, number>;

const HELP: Record<string, string> = {
  tasks_active: "Tasks that are being downloaded or shared",
  uploads_active: "Pieces being sent now",
  uploaded_bytes: "Bytes of pieces sent since the start",
  source_bytes: "Bytes received from origins since the start",
  wasted_bytes: "Bytes of pieces received in vain since the start: wrong ones, and the slower of two requests",
  stored_bytes: "Bytes of contents on disk",
  free_bytes: "Bytes free on the contents' file system",
  schedulers_up: "Schedulers connected",
  resident_bytes: "Memory of this process",
  loop_stall_seconds: "Longest time that the event loop was held up since the last scrape",
};

export interface HealthServer extends AsyncDisposable {
  readonly address: string;
}

/** @throws {LacewingError} `network` when the address cannot be listened on */
export function startHealthServer(
  figures: Figures,
  { hostname, port }: { hostname: string; port: number },
): HealthServer {
  const registry = new Registry();
  const gauges = new Map(
    Object.entries(HELP).map((
      [name, help],
    ) => [name, new Gauge({ name: `lacewing_daemon_${name}`, help, registers: [registry] })]),
  );
  const handler = async (request: Request) => {
    const { pathname } = new URL(request.url);
    if (request.method !== "GET" && request.method !== "HEAD") {
      return new Response("method not allowed\n", { status: 405, headers: { allow: "GET, HEAD" } });
    }
    if (pathname === "/healthz") return new Response("OK\n");
    if (pathname !== "/metrics") return new Response("not found\n", { status: 404 });
    for (const [name, value] of Object.entries(figures())) gauges.get(name)?.set(value);
    return new Response(await registry.metrics(), { headers: { "content-type": registry.contentType } });
  };
  const server = serve({ hostname, port }, handler);
  return {
    address: formatHostPort(server.addr),
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

function serve(place: { hostname: string; port: number }, handler: (request: Request) => Promise<Response>) {
  try {
    return Deno.serve({ ...place, onListen: () => {} }, handler);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new LacewingError(
      "network",
      `Cannot serve health at ${formatHostPort(place)}: ${reason}; set health.tcpListen.port`,
      { cause },
    );
  }
}
