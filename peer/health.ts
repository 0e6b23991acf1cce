/**
 * The daemon's health port: `/healthz` says that it serves, `/metrics` gives
 * figures to Prometheus, in its text format 0.0.4. Written here and not by
 * prom-client, as in the manager: that takes 3.5 of an idle daemon's 83 MB
 * (Deno 2.9.6), for ten lines without labels.
 */
import { formatHostPort } from "./transfer/connection.ts";
import { LacewingError } from "./core/errors.ts";

/** Figures read at each scrape; names without the `lacewing_daemon_` prefix. */
export type Figures = () => Record<string, number>;

const EXPOSITION_TYPE = "text/plain; version=0.0.4; charset=utf-8";
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
  const handler = (request: Request) => {
    const { pathname } = new URL(request.url);
    if (request.method !== "GET" && request.method !== "HEAD") {
      return new Response("method not allowed\n", { status: 405, headers: { allow: "GET, HEAD" } });
    }
    if (pathname === "/healthz") return new Response("OK\n");
    if (pathname !== "/metrics") return new Response("not found\n", { status: 404 });
    return new Response(expositionOf(figures()), { headers: { "content-type": EXPOSITION_TYPE } });
  };
  const server = serve({ hostname, port }, handler);
  return {
    address: formatHostPort(server.addr),
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/** Each figure that has a help text; none of these needs escaping, as there are no labels. */
function expositionOf(figures: Record<string, number>): string {
  return Object.entries(HELP).flatMap(([key, help]) => {
    const name = `lacewing_daemon_${key}`;
    const value = figures[key];
    return value === undefined ? [] : [`# HELP ${name} ${help}\n# TYPE ${name} gauge\n${name} ${value}\n`];
  }).join("\n");
}

function serve(place: { hostname: string; port: number }, handler: (request: Request) => Response) {
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
