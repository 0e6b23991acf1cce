/**
 * The bench's hand inside the network while BitTorrent runs: the tracker, and
 * the voice that starts aria2 on every host by its WebSocket RPC in the same
 * moment and hears when each has finished. Speaks JSON lines:
 *   in  {"id":1,"do":"connect"|"start"|"stat","address":"10.…"}, {"id":2,"do":"seeds"}
 *   out {"id":1,…}, {"done":"10.…"}
 */
import { TextLineStream } from "@std/streams/text-line-stream";
import { Tracker } from "./tracker.ts";

const RPC_PORT = 6800;
const CONNECT_TRIES = 200;
const CONNECT_PAUSE_MS = 25;

const [hostname = "", port = ""] = Deno.args;
const tracker = new Tracker();
const hosts = new Map<string, Rpc>();

/** One aria2 on its WebSocket. */
class Rpc {
  #lastId = 0;
  readonly #calls = new Map<number, (result: unknown) => void>();

  private constructor(private readonly socket: WebSocket, address: string) {
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (message.method === "aria2.onBtDownloadComplete") say({ done: address });
      if (message.id === undefined) return;
      this.#calls.get(message.id)?.(message.result);
      this.#calls.delete(message.id);
    };
  }

  static async connect(address: string): Promise<Rpc> {
    for (let tries = 0;; tries++) {
      const socket = new WebSocket(`ws://${address}:${RPC_PORT}/jsonrpc`);
      const isOpen = await new Promise<boolean>((resolve) => {
        socket.onopen = () => resolve(true);
        socket.onerror = () => resolve(false);
      });
      if (isOpen) return new Rpc(socket, address);
      if (tries === CONNECT_TRIES) throw new Error(`aria2 at ${address} does not answer`);
      await new Promise((resolve) => setTimeout(resolve, CONNECT_PAUSE_MS));
    }
  }

  call(method: string, ...params: unknown[]): Promise<unknown> {
    const id = ++this.#lastId;
    const { promise, resolve } = Promise.withResolvers<unknown>();
    this.#calls.set(id, resolve);
    this.socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    return promise;
  }
}

function say(message: unknown): void {
  console.log(JSON.stringify(message));
}

async function obey({ do: what, address = "" }: { do: string; address?: string }): Promise<Record<string, unknown>> {
  const rpc = hosts.get(address);
  switch (what) {
    case "connect":
      hosts.set(address, await Rpc.connect(address));
      return {};
    case "start":
      await rpc?.call("aria2.unpauseAll");
      return {};
    case "stat":
      return { stat: await rpc?.call("aria2.tellActive", ["uploadLength", "completedLength"]) };
    case "seeds":
      return { seeds: tracker.peers.filter(({ left }) => left === 0).length };
    default:
      throw new RangeError(`Cannot do ${what}`);
  }
}

Deno.serve({ hostname, port: Number(port), onListen: () => console.log("listening") }, (request, { remoteAddr }) => {
  return tracker.answer(request, remoteAddr.transport === "tcp" ? remoteAddr.hostname : "");
});
for await (const line of Deno.stdin.readable.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream())) {
  const { id, ...order } = JSON.parse(line);
  obey(order).then((result) => say({ id, ...result }), (error) => say({ id, error: String(error) }));
}
