/** What the client's options for traces and profiles start. */
import { assert, assertEquals, assertMatch } from "@std/assert";
import type { CommandContext } from "../../../cli/context.ts";
import { parseCommand } from "../../../cli/parse.ts";
import { readDownloadSettings } from "../../../cli/settings.ts";
import { beginTracing } from "../../../cli/tracing.ts";
import { LacewingError } from "../../../peer/core/errors.ts";
import { silentLogger } from "../../../peer/core/log.ts";
import { startCollector } from "../../testutil/collector.ts";

function begin(...args: string[]) {
  const settings = readDownloadSettings(parseCommand(["http://h/f", ...args]), () => undefined);
  let said = "";
  const terminal = { plain: true, columns: () => null, write: (text: string) => void (said += text) };
  const context = { terminal } as unknown as CommandContext;
  return { settings, context, said: () => said, tracing: beginTracing(settings, { context, log: silentLogger }) };
}

Deno.test("without --jaeger and --pprof-port nothing is changed, said or started", async () => {
  const { settings, context, said, tracing } = begin();
  await using begun = await tracing;
  assert(begun.settings === settings && begun.context === context);
  begun.end({ a: 1 }, new Error("x"));
  assertEquals(said(), "");
});

Deno.test("--jaeger sends one span that the download's requests belong to, ended once", async () => {
  await using collector = startCollector();
  const { tracing } = begin("--jaeger", collector.url, "--service-name", "ci", "--tag", "blue", "--range", "0-9");
  {
    await using begun = await tracing;
    assertEquals(begun.context.tracer?.isOn, true);
    const { traceparent } = begun.settings;
    begun.context.tracer?.start("below", { parent: traceparent }).end();
    begun.end({ "lacewing.length": 10 }, new LacewingError("network", "no"));
    begun.end({});
  }
  const [below, download] = collector.spans;
  assertEquals(collector.spans.map(({ name, service }) => [name, service]), [["below", "ci"], ["download", "ci"]]);
  assertEquals([below?.traceId, below?.parentSpanId], [download?.traceId, download?.spanId]);
  assertEquals(download?.attributes, {
    "url.full": "http://h/f",
    "lacewing.tag": "blue",
    "lacewing.has_range": true,
    "lacewing.recursive": false,
    "lacewing.length": 10,
    "error.type": "network",
  });
});

Deno.test("--pprof-port 0 says where the profiles are, and begins no trace", async () => {
  const { settings, context, said, tracing } = begin("--pprof-port", "0");
  await using begun = await tracing;
  assert(begun.settings === settings && begun.context === context);
  assertMatch(said(), /^lacewing: profiles at http:\/\/127\.0\.0\.1:\d+\/debug\/pprof\/\n$/);
});
