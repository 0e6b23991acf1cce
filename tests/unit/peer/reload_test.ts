/** Which changes of a configuration hold at once. */
import { assertEquals } from "@std/assert";
import { defaultDaemonConfig, parseDaemonConfig } from "../../../peer/config.ts";
import { configChanges, limitsOf } from "../../../peer/reload.ts";

const read = (text: string) => parseDaemonConfig(text, "c.yaml");

Deno.test("configChanges() finds none between equal configurations", () => {
  assertEquals(configChanges(defaultDaemonConfig(), read("{}")), { live: [], needRestart: [] });
});

const LIVE: [string, string, unknown][] = [
  ["download: { totalRateLimit: 10MB }", "download.totalRateLimit", 10 * 2 ** 20],
  ["download: { perPeerRateLimit: 1K }", "download.perPeerRateLimit", 1024],
  ["upload: { rateLimit: 5 }", "upload.rateLimit", 5],
];
for (const [text, path, to] of LIVE) {
  Deno.test(`configChanges() finds that ${path} holds at once`, () => {
    assertEquals(configChanges(read("{}"), read(text)), { live: [{ path, from: 0, to }], needRestart: [] });
    assertEquals(configChanges(read(text), read("{}")).live, [{ path, from: to, to: 0 }]);
  });
}

const LATER: [string, string[]][] = [
  ["workHome: /x", ["workHome"]],
  ["aliveTime: 5m", ["aliveTime"]],
  ["scheduler: { manager: { joinToken: secret } }", ["scheduler.manager.joinToken"]],
  ["scheduler: { netAddrs: ['a:1'] }", ["scheduler.netAddrs"]],
  ["upload: { concurrent: 3 }\nhost: { idc: a }", ["host.idc", "upload.concurrent"]],
];
for (const [text, paths] of LATER) {
  Deno.test(`configChanges() finds that ${paths.join(" and ")} need a restart`, () => {
    const { live, needRestart } = configChanges(read("{}"), read(text));
    assertEquals([live, [...needRestart].sort()], [[], paths]);
  });
}

Deno.test("limitsOf() takes the three limits", () => {
  const config = read("download: { totalRateLimit: 3, perPeerRateLimit: 2 }\nupload: { rateLimit: 1 }");
  assertEquals(limitsOf(config), { total: 3, perTask: 2, upload: 1 });
});
