/** A BitTorrent tracker over HTTP (BEP 3, compact answers of BEP 23), for running BitTorrent beside us. */
import { bencode } from "./torrent.ts";

/** Seconds between the announces of one client; short, so that a swarm of few minutes gets to know itself. */
const INTERVAL_S = 5;

export interface TrackedPeer {
  readonly ip: string;
  readonly port: number;
  /** Bytes that it still misses. */
  readonly left: number;
}

/** Answers announces and keeps the members of one torrent. */
export class Tracker {
  readonly #peers = new Map<string, TrackedPeer>();

  get peers(): readonly TrackedPeer[] {
    return [...this.#peers.values()];
  }

  /** @param ip address that the request came from */
  answer(request: Request, ip: string): Response {
    const query = new URL(request.url).searchParams;
    const [port, left] = [Number(query.get("port") ?? NaN), Number(query.get("left") ?? NaN)];
    if (!Number.isInteger(port) || port < 1 || port > 65535 || !Number.isInteger(left)) {
      return reply({ "failure reason": "want port and left" });
    }
    const own = `${ip}:${port}`;
    if (query.get("event") === "stopped") this.#peers.delete(own);
    else this.#peers.set(own, { ip, port, left });
    const others = [...this.#peers].filter(([id]) => id !== own).map(([, peer]) => peer);
    return reply({ interval: INTERVAL_S, "min interval": INTERVAL_S, peers: compact(others) });
  }
}

/** Six bytes for each: address and port. */
export function compact(peers: readonly TrackedPeer[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(peers.length * 6);
  for (const [index, { ip, port }] of peers.entries()) {
    bytes.set([...ip.split(".").map(Number), port >> 8, port & 0xff], index * 6);
  }
  return bytes;
}

function reply(body: Parameters<typeof bencode>[0]): Response {
  return new Response(bencode(body), { headers: { "content-type": "text/plain" } });
}
