/**
 * The origin's reader for a client without daemon, set up as the daemon's
 * would be: the same code, with `download.source` of the same configuration and
 * the same plug-ins.
 */
import type { DaemonConfig } from "../../peer/config.ts";
import { systemClock } from "../../peer/core/clock.ts";
import { LacewingError } from "../../peer/core/errors.ts";
import type { Logger } from "../../peer/core/log.ts";
import { machineFacts } from "../../peer/core/machine.ts";
import { defaultWorkHome } from "../../peer/core/paths.ts";
import { readCertificates } from "../../peer/source/certificates.ts";
import { SourcePlugins } from "../../peer/source/plugins.ts";
import { BUILT_IN_SCHEMES, createSources, type Sources } from "../../peer/source/sources.ts";
import { absolutePath } from "../output_path.ts";

/** What the daemon reads when nobody says. */
const DEFAULT_CONFIG = "/etc/lacewing/client.yaml";
const PLUGIN_DIR = "LACEWING_PLUGIN_DIR";
const DEFAULTS = { caCerts: [], insecure: false, allowPrivateNetworks: true };

/** Where the daemon would find its settings and its plug-ins. */
export interface OriginPlace {
  readonly config: string | null;
  readonly workHome: string | null;
}

export interface OriginContext {
  readonly cwd: string;
  readonly env: (name: string) => string | undefined;
}

/** @throws {LacewingError} `config_invalid` if the configuration cannot be used. */
export async function originSource(
  place: OriginPlace,
  { log, ...context }: OriginContext & { log: Logger },
): Promise<Sources> {
  const config = await daemonConfig(place.config, context.cwd);
  const { caCerts, insecure, allowPrivateNetworks } = config?.download.source ?? DEFAULTS;
  const plugins = new SourcePlugins(pluginFolder(place, context, config?.workHome), BUILT_IN_SCHEMES);
  const sources = createSources({
    config: { caCerts: await readCertificates(caCerts, "download.source.caCerts"), insecure, allowPrivateNetworks },
    clock: systemClock,
    random: Math.random,
    log,
  }, plugins);
  return {
    schemes: sources.schemes,
    open: (request, options) => sources.open(request, options),
    list: (request, options) => sources.list(request, options),
    async [Symbol.asyncDispose]() {
      await sources[Symbol.asyncDispose]();
      await plugins[Symbol.asyncDispose]();
    },
  };
}

/** The plug-ins that the daemon of this place would load. */
export async function originPlugins(place: OriginPlace, context: OriginContext): Promise<SourcePlugins> {
  const config = context.env(PLUGIN_DIR) || place.workHome !== null
    ? null
    : await daemonConfig(place.config, context.cwd);
  return new SourcePlugins(pluginFolder(place, context, config?.workHome), BUILT_IN_SCHEMES);
}

function pluginFolder({ workHome }: OriginPlace, { cwd, env }: OriginContext, configured: string | undefined): string {
  const told = env(PLUGIN_DIR);
  if (told) return absolutePath(told, cwd);
  const home = workHome ?? (configured || defaultWorkHome(machineFacts()));
  return `${absolutePath(home, cwd)}/plugins`;
}

/** What the daemon would be configured by; null where there is nothing. */
async function daemonConfig(named: string | null, cwd: string): Promise<DaemonConfig | null> {
  const path = named === null ? DEFAULT_CONFIG : absolutePath(named, cwd);
  let text: string;
  try {
    text = await Deno.readTextFile(path);
  } catch (cause) {
    if (named === null) return null;
    throw new LacewingError("config_invalid", `Cannot read configuration ${path}`, { cause });
  }
  const { parseDaemonConfig } = await import("../../peer/config.ts");
  return parseDaemonConfig(text, path);
}
