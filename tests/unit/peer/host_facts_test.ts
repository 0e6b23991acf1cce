import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { LacewingError } from "../../../peer/core/errors.ts";
import { advertisedIp, hostId, platform } from "../../../peer/host_facts.ts";
import { Place } from "../../testutil/place.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

Deno.test("hostId() is a UUID that survives restarts and differs between work homes", async () => {
  await using place = new Place();
  await using other = new Place();
  const id = await hostId(place.folder);
  assertMatch(id, UUID);
  assertEquals(await hostId(place.folder), id);
  assert(await hostId(other.folder) !== id);
});

Deno.test("hostId() takes a known id with white space around it", async () => {
  await using place = new Place();
  const id = crypto.randomUUID();
  await Deno.writeTextFile(place.path("host_id"), ` ${id}\r\n`);
  assertEquals(await hostId(place.folder), id);
});

for (const text of ["", "\n", "host-1", "0000", crypto.randomUUID().slice(1), crypto.randomUUID() + "0", "../../x"]) {
  Deno.test(`hostId() replaces ${JSON.stringify(text)}, which is no id`, async () => {
    await using place = new Place();
    await Deno.writeTextFile(place.path("host_id"), text);
    const id = await hostId(place.folder);
    assertMatch(id, UUID);
    assertEquals(await hostId(place.folder), id);
    assertEquals([...Deno.readDirSync(place.folder)].filter(({ name }) => name.endsWith(".new")), []);
  });
}

Deno.test("hostId() fails where its file cannot be read, and makes no second id", async () => {
  await using place = new Place();
  await Deno.mkdir(place.path("host_id"));
  const error = await assertRejects(() => hostId(place.folder), LacewingError) as LacewingError;
  assertEquals(error.code, "file");
  assert(error.message.includes(place.path("host_id")));
});

Deno.test("platform() is named as OCI does", () => {
  assertMatch(platform(), /^(linux|darwin|windows)\/(amd64|arm64)$/);
});

const ANY = { advertiseIP: "", listenIP: "0.0.0.0", managerUrl: null };

Deno.test("advertisedIp() takes the one configured, then a fixed listening address", async () => {
  assertEquals(await advertisedIp({ ...ANY, advertiseIP: "10.1.1.1", listenIP: "10.2.2.2" }), "10.1.1.1");
  assertEquals(await advertisedIp({ ...ANY, listenIP: "10.2.2.2" }), "10.2.2.2");
  assertEquals(await advertisedIp({ ...ANY, listenIP: "::1" }), "::1");
});

for (const [listenIP, host] of [["0.0.0.0", "127.0.0.1"], ["::", "127.0.0.1"], ["0.0.0.0", "localhost"]] as const) {
  Deno.test(`advertisedIp() listening on ${listenIP} is the local end of the way to the manager at ${host}`, async () => {
    using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const managerUrl = `http://${host}:${listener.addr.port}/some/path`;
    const [ip] = await Promise.all([
      advertisedIp({ ...ANY, listenIP, managerUrl }),
      listener.accept().then((connection) => connection.close()),
    ]);
    assertEquals(ip, "127.0.0.1");
  });
}

Deno.test("advertisedIp() falls back to an address of this machine when the manager is away", async () => {
  const port = freePort();
  const own = Deno.networkInterfaces().map(({ address }) => address);
  for (const managerUrl of [null, `http://127.0.0.1:${port}`, `https://127.0.0.1:${port}`]) {
    const ip = await advertisedIp({ ...ANY, managerUrl });
    assert(own.includes(ip), ip);
    const hasOuter = own.some((address) => !address.startsWith("127.") && !address.includes(":"));
    assertEquals(ip.startsWith("127."), !hasOuter);
  }
});

/** A port that nobody listens on. */
function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}
