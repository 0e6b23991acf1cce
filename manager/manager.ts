/**
 * The manager's composition root: the only file that knows all its rooms.
 * What starts here stops in the opposite order; a job that runs when the
 * manager stops stays pending and goes on at the next start.
 */
import { checkedCertificates } from "../peer/core/certificates.ts";
import { systemClock } from "../peer/core/clock.ts";
import { LacewingError } from "../peer/core/errors.ts";
import type { Logger } from "../peer/core/log.ts";
import type { Tracer } from "../peer/core/telemetry.ts";
import { VERSION } from "../peer/core/version.ts";
import { SCHEDULER_PATH } from "../peer/core/wire/scheduler.ts";
import { createApp } from "./app.ts";
import { Authenticator } from "./auth/authenticator.ts";
import { adminToken } from "./auth/tokens.ts";
import { checkConfig, isLoopback, type ManagerConfig, parseListen } from "./config.ts";
import { PreheatRunner } from "./jobs/preheat.ts";
import { JobService } from "./jobs/service.ts";
import { JobWatch } from "./jobs/watch.ts";
import { JobWorker } from "./jobs/worker.ts";
import { createMetrics } from "./metrics.ts";
import { createGuardedFetch } from "./registry/guarded_fetch.ts";
import { createResolver } from "./registry/resolver.ts";
import { createSchedulerService, type SchedulerService } from "./scheduler/connection.ts";
import { databasePath, openStore, type Store } from "./store/store.ts";
import { lock, makeWorkHome } from "./work_home.ts";

/** How long requests under way may take to end at a stop, milliseconds. */
const STOP_MS_MAX = 5000;

export interface ManagerOptions {
  readonly log: Logger;
  /** The admin's token; without one it is kept in a file of the work home. */
  readonly adminToken?: string;
  /** Default: records nothing. */
  readonly tracer?: Tracer;
}

/** A manager that serves. Dispose it to stop. */
export interface RunningManager extends AsyncDisposable {
  /** Base URL of the API, with the port it has. */
  readonly http: string;
}

/**
 * Starts a manager.
 *
 * @throws {LacewingError} `config_invalid`, `already_running` when another one has the work home or the address, `file`
 */
export async function startManager(config: ManagerConfig, options: ManagerOptions): Promise<RunningManager> {
  checkConfig(config);
  const { log } = options;
  await using parts = new AsyncDisposableStack();
  makeWorkHome(config.workHome);
  const database = databasePath(config.database.url, config.workHome);
  parts.use(await lock(`${config.workHome}/manager.lock`, `work home ${config.workHome}`));
  parts.use(await lock(`${database}.lock`, `database ${database}`));
  const store = parts.use(await openStore(database));
  // Nobody else has the database: leases left by a killed manager are void.
  await store.jobs.releaseAll();

  const schedulers = parts.use(startSchedulers(config, { store, log, tracer: options.tracer }));
  const watch = new JobWatch();
  const worker = parts.use(startWorker(config, { store, schedulers, watch, log }));
  const jobs = new JobService({ store, watch, worker }, { timeoutSeconds: Math.ceil(config.job.timeout / 1000) });

  const stopping = new AbortController();
  const app = createApp({
    store,
    jobs,
    watch,
    schedulers,
    upgrade: (request, remoteIp) => schedulers.handleUpgrade(request, remoteIp),
    authenticator: authenticatorOf(config, { store, options }),
    metrics: createMetrics({ store, schedulers, version: VERSION }),
    clock: systemClock,
    log: log.room("api"),
    stopping: stopping.signal,
  }, {
    loopback: isLoopback(config.server.listen),
    schedulerUrl: schedulerUrlOf(config),
    version: VERSION,
  });
  const server = serve(config, app.fetch);
  const running = parts.move();
  return {
    http: baseUrl(config, server.addr),
    async [Symbol.asyncDispose]() {
      stopping.abort();
      const closed = server.shutdown();
      await running.disposeAsync();
      await closed;
    },
  };
}

function startSchedulers(
  config: ManagerConfig,
  { store, log, tracer }: { store: Store; log: Logger; tracer: Tracer | undefined },
): SchedulerService {
  return createSchedulerService({
    log: log.room("scheduler"),
    tracer,
    clock: systemClock,
    random: Math.random,
    clusters: () => store.clusters.snapshot.map(({ id, isDefault, scopes }) => ({ id, is_default: isDefault, scopes })),
    jobsOf: (taskIds) => store.jobTasks.about(taskIds),
    joinToken: config.auth.joinToken,
  }, {
    neighbours: config.scheduler.neighbours,
    sourceConnectionsPerTask: config.scheduler.sourceConnectionsPerTask,
    hostTimeoutMs: config.scheduler.hostTimeout,
  });
}

function startWorker(
  { job, server, scheduler }: ManagerConfig,
  { store, schedulers, watch, log }: { store: Store; schedulers: SchedulerService; watch: JobWatch; log: Logger },
): JobWorker {
  const jobsLog = log.room("jobs");
  const fetch = createGuardedFetch({
    allowPrivateNetworks: job.allowPrivateNetworks ?? isLoopback(server.listen),
    caCerts: job.caCerts.map((path) => checkedCertificates(readPem(path, "job.caCerts"), { key: "job.caCerts", path })),
  });
  const deps = { store, schedulers, watch, clock: systemClock, random: Math.random, log: jobsLog };
  const preheat = new PreheatRunner({ ...deps, resolver: createResolver({ fetch, log: log.room("registry") }) }, {
    concurrentTasks: job.concurrentTasks,
    retries: job.retries,
    hostsBackAtMs: systemClock.nowMs() + scheduler.hostTimeout,
  });
  const worker = new JobWorker({ ...deps, preheat, now: Date.now }, {
    owner: `${store.managerId}/${crypto.randomUUID()}`,
    keepMs: job.keep,
  });
  worker.start();
  return worker;
}

/** Null where anyone may call. */
function authenticatorOf(
  { auth, server, workHome }: ManagerConfig,
  { store, options }: { store: Store; options: ManagerOptions },
): Authenticator | null {
  if (auth.disabled && !isLoopback(server.listen)) {
    options.log.warn("auth.disabled is set: everyone who reaches this address may do everything", {
      listen: server.listen,
    });
  }
  if (auth.disabled || isLoopback(server.listen)) return null;
  const { token, made } = adminToken(workHome, options.adminToken);
  if (made !== null) options.log.info("the admin token was made; it is in this file", { file: made });
  return new Authenticator({ tokens: store.tokens, now: Date.now }, { adminToken: token, joinToken: auth.joinToken });
}

function serve({ server }: ManagerConfig, fetch: ReturnType<typeof createApp>["fetch"]) {
  const { cert, key } = server.tls;
  const tls = cert === "" ? {} : { cert: readPem(cert, "server.tls.cert"), key: readPem(key, "server.tls.key") };
  const handler = (request: Request, info: Deno.ServeHandlerInfo<Deno.NetAddr>) =>
    fetch(request, { remoteIp: info.remoteAddr.hostname });
  const stop = new AbortController();
  try {
    const listener = Deno.serve(
      { ...parseListen(server.listen), ...tls, signal: stop.signal, onListen: () => {} },
      handler,
    );
    return {
      addr: listener.addr,
      /** Lets requests end, but not for ever. */
      async shutdown() {
        const timer = setTimeout(() => stop.abort(), STOP_MS_MAX);
        await listener.shutdown();
        clearTimeout(timer);
      },
    };
  } catch (cause) {
    if (cause instanceof Deno.errors.AddrInUse) {
      throw new LacewingError(
        "already_running",
        `Cannot listen on ${server.listen}: the address is in use; stop who uses it, or give another --listen`,
        { cause },
      );
    }
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new LacewingError("config_invalid", `Cannot listen on ${server.listen}: ${reason}`, { cause });
  }
}

function readPem(path: string, key: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new LacewingError("config_invalid", `Cannot use ${key} ${path}: ${reason}`, { cause });
  }
}

function baseUrl({ server }: ManagerConfig, { hostname, port }: Deno.NetAddr): string {
  const name = parseListen(server.listen)?.hostname ?? hostname;
  return `${server.tls.cert === "" ? "http" : "https"}://${name.includes(":") ? `[${name}]` : name}:${port}`;
}

function schedulerUrlOf({ server }: ManagerConfig): (requestUrl: string) => string {
  const scheme = server.tls.cert === "" ? "http" : "https";
  const { advertiseAddr } = server;
  const fixed = advertiseAddr === "" || advertiseAddr.includes("://") ? advertiseAddr : `${scheme}://${advertiseAddr}`;
  return (requestUrl) => {
    const url = new URL(SCHEDULER_PATH, fixed === "" ? requestUrl : fixed);
    url.protocol = url.protocol === "https:" || url.protocol === "wss:" ? "wss:" : "ws:";
    return url.href;
  };
}
