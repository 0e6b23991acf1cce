/** Where the client's records go. */
import { assertEquals, assertThrows } from "@std/assert";
import { LacewingError } from "../../../peer/core/errors.ts";
import type { PathFacts } from "../../../peer/core/paths.ts";
import { openClientLog } from "../../../cli/client_log.ts";
import { parseCommand } from "../../../cli/parse.ts";
import { readDownloadSettings } from "../../../cli/settings.ts";

function settingsOf(...args: string[]) {
  return readDownloadSettings(parseCommand(["http://o.test/f", ...args]), () => undefined);
}

async function withPlace(run: (place: { facts: PathFacts; cwd: string }) => void): Promise<void> {
  const cwd = await Deno.makeTempDir();
  const env = (name: string) => name === "XDG_STATE_HOME" ? `${cwd}/state` : undefined;
  try {
    run({ facts: { platform: "linux", uid: 1, env, writable: () => false }, cwd });
  } finally {
    await Deno.remove(cwd, { recursive: true });
  }
}

function records(path: string): { level: string; message: string; url?: string }[] {
  return Deno.readTextFileSync(path).trim().split("\n").map((line) => JSON.parse(line));
}

Deno.test("records go to core.log in --logdir, without secrets", () =>
  withPlace((place) => {
    using client = openClientLog(settingsOf("--logdir", "logs"), place);
    client.log.info("download", { url: "http://u:pw@o/f?Signature=SECRET" });
    client.log.debug("detail");
    const [record, ...more] = records(`${place.cwd}/logs/core.log`);
    assertEquals([record?.message, more], ["download", []]);
    assertEquals(/SECRET|pw@/.test(record?.url ?? ""), false);
  }));

Deno.test("--verbose adds debug records; without --logdir they go to the default folder", () =>
  withPlace((place) => {
    using client = openClientLog(settingsOf("--verbose"), place);
    client.log.debug("detail");
    assertEquals(records(`${place.cwd}/state/lacewing/client/core.log`)[0]?.level, "debug");
  }));

Deno.test("a log folder that was asked for must be there; the default one may be missing", () =>
  withPlace((place) => {
    Deno.writeTextFileSync(`${place.cwd}/file`, "");
    const error = assertThrows(() => openClientLog(settingsOf("--logdir", "file/logs"), place), LacewingError);
    assertEquals(error.code, "file");
    Deno.writeTextFileSync(`${place.cwd}/state`, "");
    using client = openClientLog(settingsOf(), place);
    client.log.info("goes nowhere");
  }));
