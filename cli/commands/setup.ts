/**
 * `lacewing setup RUNTIME`: makes a container runtime of this machine pull
 * through the daemon, or takes that back. stdout says what was done to which
 * file (with --dry-run the files themselves), stderr what is left to do.
 */
import { LacewingError } from "../../peer/core/errors.ts";
import type { CommandContext } from "../context.ts";
import { askDaemon } from "../daemon_question.ts";
import { absolutePath } from "../output_path.ts";
import type { ParsedCommand } from "../parse.ts";
import { readDaemonSettings } from "../settings.ts";
import { planContainerd } from "../setup/containerd.ts";
import { MachineFiles } from "../setup/config_files.ts";
import { planDocker } from "../setup/docker.ts";
import type { ConfigFiles, ProxyFacts, Runtime, SetupOrder, SetupPlan } from "../setup/plan.ts";
import { planRegistriesConf } from "../setup/registries_conf.ts";
import { readSetupSettings, type SetupSettings } from "../setup/settings.ts";
import { safeLine, writeStdout } from "../terminal.ts";

/** Where a daemon with nothing but a `proxy:` section listens. */
const USUAL_MIRROR = new URL("http://127.0.0.1:65001");

const PLANNERS: Record<Runtime, (order: SetupOrder, files: ConfigFiles) => Promise<SetupPlan>> = {
  containerd: planContainerd,
  docker: planDocker,
  podman: planRegistriesConf,
  crio: planRegistriesConf,
};

/** @throws {LacewingError} `usage`, `config_invalid`, `conflict`, `policy`, `file`, `disk_full` */
export async function setUp(parsed: ParsedCommand, context: CommandContext): Promise<void> {
  const settings = readSetupSettings(parsed);
  const say = (text: string) => context.terminal.write(`lacewing: ${safeLine(text)}\n`);
  const files = new MachineFiles(absolutePath(settings.root ?? "/", context.cwd));
  const { mirror, proxy, note } = settings.remove
    ? { mirror: USUAL_MIRROR, proxy: null, note: null }
    : await mirrorOf(settings, parsed, context);
  if (note !== null) say(note);
  const { changes, notes } = await PLANNERS[settings.runtime]({ ...settings, mirror, proxy }, files);
  if (settings.dryRun) {
    const texts = changes.map(({ path, before, after }) => {
      const what = after === null ? " (removed)" : before === after ? " (unchanged)" : before === null ? " (new)" : "";
      return `# ${files.pathOf(path)}${what}\n${after ?? ""}`;
    });
    await writeStdout(texts.join("\n"));
  } else {
    const done = await files.apply(changes);
    await writeStdout(done.map(({ what, path }) => `${what} ${path}\n`).join(""));
  }
  if (settings.remove && changes.length === 0 && notes.length === 0) {
    say(`nothing of lacewing stands in the files of ${settings.runtime}`);
  }
  for (const text of notes) say(text);
  if (proxy?.password === true) {
    say(
      "the proxy wants a name and a password (proxy.basicAuth), which runtimes do not give to a mirror: let it listen " +
        "on loopback without them",
    );
  }
}

interface Mirror {
  readonly mirror: URL;
  readonly proxy: ProxyFacts | null;
  /** What the user should know of the choice, or null. */
  readonly note: string | null;
}

/** From the command line, else from the daemon that runs, else the usual place. */
async function mirrorOf(
  { mirror, runtime }: SetupSettings,
  parsed: ParsedCommand,
  { cwd, env }: CommandContext,
): Promise<Mirror> {
  const told = readDaemonSettings(parsed, env).socket;
  const answer = await askDaemon(async (connection) => (await connection.status()).proxy ?? null, {
    socket: told,
    cwd,
  });
  if ("reason" in answer) {
    if (mirror !== null) return { mirror, proxy: null, note: null };
    // A socket that was named must be that of a daemon.
    if (told !== null) throw answer.reason;
    const note = `no daemon answers: the mirror is taken to be ${USUAL_MIRROR.origin}; give --mirror for another one`;
    return { mirror: USUAL_MIRROR, proxy: null, note };
  }
  const { value: proxy, socket } = answer;
  if (mirror !== null) return { mirror, proxy, note: null };
  if (proxy === null) {
    throw new LacewingError(
      "config_invalid",
      `Cannot set up ${runtime}: the daemon at ${socket} has no proxy; add a section "proxy: {}" to its configuration ` +
        "and start it again, or give --mirror",
    );
  }
  return { mirror: mirrorUrl(proxy.address), proxy, note: null };
}

/** The address for programs of this machine. @param address `HOST:PORT` that the proxy listens on */
export function mirrorUrl(address: string): URL {
  return new URL(`http://${address.replace(/^0\.0\.0\.0:/, "127.0.0.1:").replace(/^\[::\]:/, "[::1]:")}`);
}
