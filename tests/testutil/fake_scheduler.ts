/** A scheduler end for tests: real WebSockets, every word of the host kept, answers given by the test. */
import type { HostMessage, SchedulerMessage } from "../../peer/core/wire/scheduler.ts";

export class FakeScheduler implements AsyncDisposable {
  readonly received: HostMessage[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #sockets = new Set<WebSocket>();
  readonly #waiters = new Set<() => void>();

  constructor(private readonly heartbeatMs = 60_000, port = 0) {
    this.#server = Deno.serve({ port, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
      const { socket, response } = Deno.upgradeWebSocket(request);
      this.#sockets.add(socket);
      socket.onmessage = (event) => this.#receive(JSON.parse(event.data), socket);
      socket.onclose = () => {
        this.#sockets.delete(socket);
        this.#wake();
      };
      return response;
    });
  }

  get port(): number {
    return this.#server.addr.port;
  }

  get url(): string {
    return `ws://127.0.0.1:${this.port}/connect`;
  }

  send(message: SchedulerMessage | string): void {
    for (const socket of this.#sockets) socket.send(typeof message === "string" ? message : JSON.stringify(message));
  }

  /** The first message of this type at or after `from`. */
  async got<T extends HostMessage["type"]>(type: T, from = 0): Promise<Extract<HostMessage, { type: T }>> {
    while (true) {
      const found = this.received.slice(from).find((message) => message.type === type);
      if (found !== undefined) return found as Extract<HostMessage, { type: T }>;
      await new Promise<void>((resolve) => this.#waiters.add(resolve));
    }
  }

  /** Breaks every connection. */
  breakAll(): void {
    for (const socket of this.#sockets) socket.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.breakAll();
    while (this.#sockets.size > 0) await new Promise<void>((resolve) => this.#waiters.add(resolve));
    await this.#server.shutdown();
  }

  #receive(message: HostMessage, from: WebSocket): void {
    this.received.push(message);
    const welcome: SchedulerMessage = { type: "welcome", v: 1, cluster_id: 1, heartbeat_ms: this.heartbeatMs };
    if (message.type === "hello") from.send(JSON.stringify(welcome));
    this.#wake();
  }

  #wake(): void {
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const wake of waiters) wake();
  }
}
