/**
 * What this host tells others of itself: an id that survives restarts and
 * address changes, its name, and the address that neighbours reach it at.
 */
import { LacewingError } from "./core/errors.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const ROUTE_TIMEOUT_MS = 2_000;

/** The host id kept in the work home; made at the first start. */
export async function hostId(workHome: string): Promise<string> {
  const path = `${workHome}/host_id`;
  try {
    const known = (await Deno.readTextFile(path)).trim();
    if (UUID.test(known)) return known;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) {
      throw new LacewingError("file", `Cannot read ${path}: ${error}`, { cause: error });
    }
  }
  const id = crypto.randomUUID();
  await Deno.writeTextFile(`${path}.new`, `${id}\n`);
  await Deno.rename(`${path}.new`, path);
  return id;
}

/** `linux/amd64`, as OCI names this machine. */
export function platform(): string {
  const architectures: Record<string, string> = { x86_64: "amd64", aarch64: "arm64" };
  return `${Deno.build.os}/${architectures[Deno.build.arch] ?? Deno.build.arch}`;
}

/**
 * The address that neighbours use: the one configured, a fixed listening
 * address, the local end of a connection to the manager, or the first that is not loopback.
 */
export async function advertisedIp(
  { advertiseIP, listenIP, managerUrl }: { advertiseIP: string; listenIP: string; managerUrl: string | null },
): Promise<string> {
  if (advertiseIP !== "") return advertiseIP;
  if (listenIP !== "0.0.0.0" && listenIP !== "::") return listenIP;
  const routed = managerUrl === null ? null : await addressTowards(new URL(managerUrl));
  if (routed !== null) return routed;
  const interfaces = Deno.networkInterfaces();
  const outer = interfaces.find(({ family, address }) => family === "IPv4" && !address.startsWith("127."));
  return outer?.address ?? "127.0.0.1";
}

async function addressTowards(url: URL): Promise<string | null> {
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  try {
    using connection = await Deno.connect({
      hostname: url.hostname.replace(/^\[|\]$/g, ""),
      port,
      signal: AbortSignal.timeout(ROUTE_TIMEOUT_MS),
    });
    return connection.localAddr.hostname;
  } catch {
    return null;
  }
}
