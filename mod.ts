/**
 * Lacewing as a library: the manager, the daemon and the client of one program
 * or test. Every example here is run by a test.
 *
 * @module
 */
import { type ManagerConfig, managerConfig } from "./manager/config.ts";
import { type RunningManager, startManager as runManager } from "./manager/manager.ts";
import { type DaemonConfig, validateDaemonConfig } from "./peer/config.ts";
import { validateConfig } from "./peer/core/config.ts";
import { type Logger, silentLogger } from "./peer/core/log.ts";
import { type RunningPeer, startPeer as runPeer } from "./peer/daemon.ts";

export { download, type DownloadOptions } from "./cli/library/download.ts";
export { preheat, type PreheatArgs, type PreheatJob, type PreheatOptions } from "./cli/library/preheat.ts";
export { type ErrorCode, ERRORS, LacewingError } from "./peer/core/errors.ts";
export { createLogger, type Logger } from "./peer/core/log.ts";
export { canonicalUrl, taskId } from "./peer/core/task_id.ts";
export type { DownloadStats } from "./peer/core/wire/ipc.ts";
export type { DaemonConfig, ManagerConfig, RunningManager, RunningPeer };

export interface StartManagerOptions {
  /** Keys of `manager.yaml`; what is left out has its default. */
  readonly config?: Record<string, unknown>;
  readonly log?: Logger;
  /** The admin's token; without one it is kept in a file of the work home. */
  readonly adminToken?: string;
}

/**
 * Starts a manager in this process: REST API, job workers and scheduler.
 *
 * @param workHome folder of its database; made when missing
 * @throws {LacewingError} `config_invalid`, `already_running`, `file`
 * @example
 * ```ts
 * import { startManager } from "./mod.ts";
 *
 * const workHome = await Deno.makeTempDir();
 * await using manager = await startManager(workHome, { config: { server: { listen: "127.0.0.1:0" } } });
 * const answer = await fetch(`${manager.http}/healthy`);
 * console.log(await answer.text()); // OK
 * ```
 */
export function startManager(workHome: string, options: StartManagerOptions = {}): Promise<RunningManager> {
  const config = validateConfig({ ...options.config, workHome }, { schema: managerConfig, origin: "config" });
  const { log = silentLogger, adminToken } = options;
  return runManager(config, { log, ...(adminToken === undefined ? {} : { adminToken }) });
}

export interface StartPeerOptions {
  /** Keys of `client.yaml`; what is left out has its default. */
  readonly config?: Record<string, unknown>;
  /** Path of the Unix socket; default `daemon.sock` in the work home. */
  readonly socket?: string;
  readonly log?: Logger;
}

/**
 * Starts a daemon in this process.
 *
 * @param workHome absolute path of its folder; made when missing
 * @throws {LacewingError} `config_invalid`, `already_running`, `file`
 * @example
 * ```ts
 * import { download, startPeer } from "./mod.ts";
 *
 * await using origin = Deno.serve({ port: 0, onListen() {} }, () => new Response("hello"));
 * const workHome = await Deno.makeTempDir();
 * const config = { upload: { tcpListen: { port: 0 } }, health: { tcpListen: { port: 0 } } };
 * await using peer = await startPeer(workHome, { config });
 *
 * const url = `http://127.0.0.1:${origin.addr.port}/greeting`;
 * const stats = await download(url, `${workHome}/greeting`, { socket: peer.addresses.socket });
 * console.log(stats.from_source, await Deno.readTextFile(`${workHome}/greeting`)); // 5 hello
 * ```
 */
export function startPeer(workHome: string, options: StartPeerOptions = {}): Promise<RunningPeer> {
  const config = validateDaemonConfig(options.config ?? {}, "config");
  return runPeer({
    config,
    workHome,
    socket: options.socket ?? `${workHome}/daemon.sock`,
    log: options.log ?? silentLogger,
    aliveTimeMs: config.aliveTime ?? 0,
  });
}
