/**
 * The benches' origin: nginx on the origin's host. It serves the workload's
 * folder, and its access log counts the bytes.
 */
import type { BenchNetwork } from "./network.ts";
import { ORIGIN, type Workload } from "./contestant.ts";
import { BenchProcess } from "./processes.ts";

export interface BenchOrigin extends AsyncDisposable {
  readonly process: BenchProcess;
  url(name: string): string;
  /** Body bytes of the answers that have ended. */
  sentBytes(): number;
}

/** Where it runs; an address may bring its own port. */
export type OriginNetwork = Pick<BenchNetwork, "address" | "on">;

/** @param folder for its configuration and log */
export async function startOrigin(
  network: OriginNetwork,
  { workload, folder }: { workload: Workload; folder: string },
): Promise<BenchOrigin> {
  const address = network.address(ORIGIN);
  const log = `${folder}/access.log`;
  await Deno.writeTextFile(`${folder}/nginx.conf`, configOf({ address, folder, root: workload.folder, log }));
  const process = new BenchProcess(
    "nginx",
    network.on(ORIGIN, ["nginx", "-c", `${folder}/nginx.conf`, "-e", `${folder}/error.log`]),
  );
  await Promise.race([answers(network, address), process.ended.then(() => process.line(() => false))]);
  return {
    process,
    url: (name) => `http://${address}/${name}`,
    sentBytes: () =>
      Deno.readTextFileSync(log).split("\n").reduce((total, line) => total + Number(line.split(" ")[0] || 0), 0),
    [Symbol.asyncDispose]: () => process[Symbol.asyncDispose](),
  };
}

function configOf({ address, folder, root, log }: { address: string; folder: string; root: string; log: string }) {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  return `daemon off;
master_process off;
user root;
pid ${folder}/nginx.pid;
events { worker_connections 4096; }
http {
  log_format bytes '$body_bytes_sent $status $msec $request_time $remote_addr $http_range';
  access_log ${log} bytes;
  sendfile on;
  tcp_nopush on;
  keepalive_timeout 30s;
  keepalive_requests 100000;
  default_type application/octet-stream;
  ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join("\n  ")}
  server {
    listen ${address.includes(":") ? address : `${address}:80`} backlog=4096;
    location = /ready { access_log off; return 204; }
    location / { root ${root}; }
  }
}
`;
}

async function answers(network: OriginNetwork, address: string): Promise<void> {
  const retry = ["--retry", "50", "--retry-connrefused", "--retry-delay", "0", "--retry-max-time", "10"];
  const curl = new BenchProcess("curl", network.on(ORIGIN, ["curl", "-s", ...retry, `http://${address}/ready`]));
  if (await curl.ended !== 0) throw new Error(`nginx at ${address} does not answer`);
}
