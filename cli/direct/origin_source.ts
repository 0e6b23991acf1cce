/**
 * The origin's reader for a client without daemon, set up as the daemon's
 * would be: the same code, with `download.source` of the same configuration.
 */
import { systemClock } from "../../peer/core/clock.ts";
import { LacewingError } from "../../peer/core/errors.ts";
import type { Logger } from "../../peer/core/log.ts";
import { createSources, type Sources } from "../../peer/source/sources.ts";
import { absolutePath } from "../output_path.ts";

/** What the daemon reads when nobody says. */
const DEFAULT_CONFIG = "/etc/lacewing/client.yaml";

/** @throws {LacewingError} `config_invalid` if the configuration cannot be used. */
export async function originSource(
  config: string | null,
  { cwd, log }: { cwd: string; log: Logger },
): Promise<Sources> {
  const path = config === null ? DEFAULT_CONFIG : absolutePath(config, cwd);
  const { caCerts, insecure, allowPrivateNetworks } = await sourceSettings(path, { mayBeMissing: config === null });
  return createSources({
    config: { caCerts: await Promise.all(caCerts.map(readCertificates)), insecure, allowPrivateNetworks },
    clock: systemClock,
    random: Math.random,
    log,
  });
}

async function sourceSettings(path: string, { mayBeMissing }: { mayBeMissing: boolean }) {
  let text: string;
  try {
    text = await Deno.readTextFile(path);
  } catch (cause) {
    if (mayBeMissing) return { caCerts: [], insecure: false, allowPrivateNetworks: true };
    throw new LacewingError("config_invalid", `Cannot read configuration ${path}`, { cause });
  }
  const { parseDaemonConfig } = await import("../../peer/config.ts");
  return parseDaemonConfig(text, path).download.source;
}

async function readCertificates(path: string): Promise<string> {
  try {
    return await Deno.readTextFile(path);
  } catch (cause) {
    throw new LacewingError("config_invalid", `Cannot read certificates ${path} of download.source.caCerts`, { cause });
  }
}
