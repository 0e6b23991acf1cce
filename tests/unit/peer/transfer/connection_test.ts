import { assertEquals, assertRejects } from "@std/assert";
import { systemClock } from "../../../../peer/core/clock.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { closeQuietly, dial, formatHostPort, parseHostPort } from "../../../../peer/transfer/connection.ts";
import { fakeNeighbour } from "./memory_provider.ts";

for (
  const [text, hostname, port] of [
    ["10.0.0.1:65002", "10.0.0.1", 65002],
    ["[::1]:80", "::1", 80],
    ["host-a.example:1", "host-a.example", 1],
  ] as const
) {
  Deno.test(`parseHostPort() reads ${text} and formatHostPort() writes it`, () => {
    assertEquals(parseHostPort(text), { hostname, port });
    assertEquals(formatHostPort({ hostname, port }), text);
  });
}

for (
  const text of ["", "10.0.0.1", ":80", "::1:80", "10.0.0.1:0", "10.0.0.1:65536", "a b:1", "[x]:1", "h:-1", "h:1:2"]
) {
  Deno.test(`parseHostPort() does not take ${JSON.stringify(text)}`, () => {
    assertEquals(parseHostPort(text), null);
  });
}

const OPTIONS = { clock: systemClock, timeoutMs: 3000, signal: new AbortController().signal };

Deno.test("dial() opens a connection that may be closed twice", async () => {
  await using neighbour = fakeNeighbour(() => Promise.resolve());
  const conn = await dial(neighbour.address, OPTIONS);
  closeQuietly(conn);
  closeQuietly(conn);
});

Deno.test("dial() names the neighbour that refuses", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const address = `127.0.0.1:${listener.addr.port}`;
  listener.close();
  const error = await assertRejects(() => dial(address, OPTIONS), LacewingError, address);
  assertEquals(error.code, "peer_failed");
});

Deno.test("dial() refuses what is no address", async () => {
  const error = await assertRejects(() => dial("nonsense", OPTIONS), LacewingError);
  assertEquals(error.code, "peer_failed");
});

Deno.test("dial() rethrows the reason of an abort", async () => {
  const reason = new Error("not wanted");
  await assertRejects(
    () => dial("127.0.0.1:1", { ...OPTIONS, signal: AbortSignal.abort(reason) }),
    Error,
    "not wanted",
  );
});

Deno.test("dial() gives up on a neighbour that does not take the connection in time", async () => {
  // A full accept queue: the kernel drops further SYNs, as an unreachable host does.
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0, tcpBacklog: 1 });
  const address = `127.0.0.1:${listener.addr.port}`;
  const held: Deno.TcpConn[] = [];
  try {
    const error = await assertRejects(async () => {
      for (let i = 0; i < 2000; i++) held.push(await dial(address, { ...OPTIONS, timeoutMs: 100 }));
    }, LacewingError);
    assertEquals(error.code, "peer_failed");
  } finally {
    for (const conn of held) conn.close();
    listener.close();
  }
});
