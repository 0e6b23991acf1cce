/** The client behind a proxy of the environment, as the README's guide has it: with a daemon that it starts, and alone. */
// covers: peer/source/proxy_env.ts
import { assert, assertEquals } from "@std/assert";
import { endProcess } from "../testutil/child.ts";
import { Place } from "../testutil/place.ts";
import { startOrigin } from "../testutil/origin.ts";
import { runClient } from "../testutil/process.ts";

/** A proxy that answers everything itself, and remembers what it was asked. */
class LittleProxy implements AsyncDisposable {
  readonly asked: string[] = [];
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #served = this.#serve();

  get url(): string {
    return `http://127.0.0.1:${this.#listener.addr.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    await this.#served;
  }

  async #serve(): Promise<void> {
    try {
      for await (const connection of this.#listener) await this.#answer(connection);
    } catch {
      // It was closed.
    }
  }

  async #answer(connection: Deno.Conn): Promise<void> {
    using _ = connection;
    let head = "";
    const buffer = new Uint8Array(4096);
    while (!head.includes("\r\n\r\n")) {
      const read = await connection.read(buffer);
      if (read === null) return;
      head += new TextDecoder().decode(buffer.subarray(0, read));
    }
    this.asked.push(head.split("\r\n", 1)[0]!);
    await connection.write(
      new TextEncoder().encode("HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\nfrom afar"),
    );
  }
}

for (const kind of ["alone", "with a daemon that it starts"]) {
  Deno.test(`the client ${kind} takes HTTP_PROXY for names that only the proxy knows, but not for NO_PROXY`, async () => {
    await using place = new Place();
    await using proxy = new LittleProxy();
    await using origin = startOrigin();
    const env = { HTTP_PROXY: proxy.url, NO_PROXY: "localhost,127.0.0.0/8" };
    const config = place.path("client.yaml");
    const lines = ["aliveTime: 1s", "upload: { tcpListen: { port: 0 } }", "health: { tcpListen: { port: 0 } }"];
    await Deno.writeTextFile(config, lines.join("\n"));
    const own = ["--config", config, "--workhome", place.path("home"), "--daemon-sock", place.path("sock")];
    const flags = kind === "alone" ? place.withoutDaemon() : [...own, "--logdir", place.path("log"), "--verbose"];
    const far = await runClient(["http://only-there.invalid/x", "-O", place.path("out/far"), ...flags], { env });
    const [, pid] = /started as process (\d+)\n/.exec(far.stderr) ?? [];
    try {
      assertEquals([far.code, await Deno.readTextFile(place.path("out/far"))], [0, "from afar"], far.stderr);
      assert(proxy.asked.length > 0 && proxy.asked.every((line) => line.includes(" http://only-there.invalid/x ")));
      const count = proxy.asked.length;
      const near = await runClient([origin.put("/y", { size: 10 }), "-O", place.path("out/near"), ...flags], { env });
      assertEquals([near.code, proxy.asked.length], [0, count], near.stderr);
      assertEquals(pid === undefined, kind === "alone");
    } finally {
      if (pid !== undefined) await endProcess(Number(pid));
    }
  });
}
