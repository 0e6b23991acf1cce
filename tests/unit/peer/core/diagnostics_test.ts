/** What is started for which options, and which ports are taken. */
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { parsePprofPort, startDiagnostics } from "../../../../peer/core/diagnostics.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { silentLogger } from "../../../../peer/core/log.ts";
import { startCollector } from "../../../testutil/collector.ts";

const OFF = { collector: null, serviceName: "test", pprofPort: null, log: silentLogger };

Deno.test("startDiagnostics() starts nothing that was not asked for", async () => {
  await using diagnostics = await startDiagnostics(OFF);
  assertEquals([diagnostics.tracer.isOn, diagnostics.pprof], [false, null]);
});

Deno.test("startDiagnostics() sends the spans of the service to the collector at the end", async () => {
  await using collector = startCollector();
  {
    await using diagnostics = await startDiagnostics({ ...OFF, collector: collector.url });
    diagnostics.tracer.start("work").end();
  }
  assertEquals(collector.spans.map(({ service, name }) => [service, name]), [["test", "work"]]);
});

Deno.test("startDiagnostics() serves profiles until it is disposed of", async () => {
  let url: string;
  {
    await using diagnostics = await startDiagnostics({ ...OFF, pprofPort: 0 });
    url = diagnostics.pprof!;
    assertEquals(await (await fetch(url)).text().then((text) => text.includes("heap")), true);
  }
  await assertRejects(() => fetch(url), TypeError);
});

Deno.test("startDiagnostics() leaves nothing behind when one part cannot start", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const options = { ...OFF, collector: "http://127.0.0.1:1", pprofPort: listener.addr.port };
  const error = await assertRejects(() => startDiagnostics(options), LacewingError);
  assertEquals(error.code, "network");
  listener.close();
});

for (const [text, port] of [["-1", null], ["0", 0], ["6060", 6060], ["65535", 65535]] as const) {
  Deno.test(`parsePprofPort() reads ${text}`, () => assertEquals(parsePprofPort(text), port));
}

for (const text of ["", "-2", "65536", "99999", "6060x", "1e3", "0x10", " 1", "-0"]) {
  Deno.test(`parsePprofPort() refuses ${JSON.stringify(text)}`, () => {
    assertEquals(assertThrows(() => parsePprofPort(text), LacewingError, "want 0 to 65535").code, "usage");
  });
}
