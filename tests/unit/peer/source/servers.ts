/**
 * Servers of the source tests: one that answers by a function, and one that
 * writes exactly the bytes it is told, right or wrong.
 */

/** What a server was asked; the request itself is gone once it was answered. */
export interface SeenRequest {
  readonly url: string;
  readonly headers: Headers;
}

/** A server whose answers are a function's; keeps what it was asked. */
export class TestServer implements AsyncDisposable {
  readonly requests: SeenRequest[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  constructor(
    answer: (request: Request, index: number) => Response | Promise<Response>,
    { hostname = "127.0.0.1", tls }: { hostname?: string; tls?: { cert: string; key: string } } = {},
  ) {
    this.#server = Deno.serve({ port: 0, hostname, onListen: () => {}, ...tls }, (request) => {
      this.requests.push({ url: request.url, headers: new Headers(request.headers) });
      return answer(request, this.requests.length - 1);
    });
  }

  get port(): number {
    return this.#server.addr.port;
  }

  url(path = "/", host = "127.0.0.1"): string {
    return `http://${host}:${this.port}${path}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

/** What a raw connection may do with each request that came. */
export type RawAnswer = (
  write: (text: string | Uint8Array) => Promise<void>,
  request: string,
  connection: Deno.Conn,
) => Promise<"keep" | void>;

/** A server that reads request heads and writes what it is told; closes the connection unless told to keep it. */
export class RawServer implements AsyncDisposable {
  readonly requests: string[] = [];
  connectionCount = 0;
  readonly #listener: Deno.TcpListener;
  readonly #open = new Set<Deno.Conn>();
  readonly #done: Promise<void>;
  readonly #work = new Set<Promise<void>>();

  constructor(answer: RawAnswer) {
    this.#listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
    this.#done = this.#accept(answer);
  }

  get port(): number {
    return this.#listener.addr.port;
  }

  url(path = "/", host = "127.0.0.1"): string {
    return `http://${host}:${this.port}${path}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    for (const connection of this.#open) closeQuietly(connection);
    await this.#done;
    await Promise.all(this.#work);
  }

  async #accept(answer: RawAnswer): Promise<void> {
    try {
      for await (const connection of this.#listener) {
        this.connectionCount += 1;
        this.#open.add(connection);
        const work = this.#serve(connection, answer).finally(() => this.#work.delete(work));
        this.#work.add(work);
      }
    } catch {
      // The listener was closed.
    }
  }

  async #serve(connection: Deno.Conn, answer: RawAnswer): Promise<void> {
    const encoder = new TextEncoder();
    const write = async (text: string | Uint8Array) => {
      const bytes = typeof text === "string" ? encoder.encode(text) : text;
      for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
    };
    const buffer = new Uint8Array(64 * 1024);
    try {
      for (;;) {
        const count = await connection.read(buffer);
        if (count === null) break;
        const request = new TextDecoder().decode(buffer.subarray(0, count));
        this.requests.push(request);
        if (await answer(write, request, connection) !== "keep") break;
      }
    } catch {
      // The client went away.
    }
    closeQuietly(connection);
    this.#open.delete(connection);
  }
}

/** Waits until a client closes its side. */
export async function closedByPeer(connection: Deno.Conn): Promise<void> {
  const buffer = new Uint8Array(100);
  while (await connection.read(buffer).catch(() => null) !== null);
}

function closeQuietly(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch {
    // It is closed already.
  }
}
