/**
 * The daemon's composition root: the only file that knows all its rooms.
 * Starts them in the order of their needs and stops them in reverse.
 */
import { formatDuration } from "./core/units.ts";
import { systemClock } from "./core/clock.ts";
import type { Logger } from "./core/log.ts";
import { RateLimiter } from "./core/rate_limit.ts";
import type { Tracer } from "./core/telemetry.ts";
import { VERSION } from "./core/version.ts";
import type { ProxyFacts } from "./core/wire/ipc.ts";
import { type HostFacts, SCHEDULER_PATH } from "./core/wire/scheduler.ts";
import { type DaemonConfig, fixedSchedulerUrls } from "./config.ts";
import { explain } from "./explain.ts";
import { startHealthServer } from "./health.ts";
import { advertisedIp, hostId, platform } from "./host_facts.ts";
import { startIpcServer } from "./ipc/server.ts";
import { LoopLag } from "./loop_lag.ts";
import type { Limits } from "./reload.ts";
import { Orders } from "./scheduler_client/orders.ts";
import { SchedulerSet } from "./scheduler_client/scheduler_set.ts";
import { type Proxy, startProxy } from "./proxy/proxy.ts";
import { mirrorCertificates, proxySettings, withUnverified } from "./proxy/proxy_settings.ts";
import { readCertificates } from "./source/certificates.ts";
import type { HttpSourceConfig, HttpSourceOptions } from "./source/http_source.ts";
import type { Source } from "./source/source.ts";
import { SourcePlugins } from "./source/plugins.ts";
import { BUILT_IN_SCHEMES, createSources } from "./source/sources.ts";
import { openDiskStore } from "./storage/disk_store.ts";
import { PieceEvents } from "./task/piece_events.ts";
import { createPieceProvider } from "./task/provider.ts";
import { HeldNews, heldTasks } from "./task/held.ts";
import { noSwarm } from "./task/swarm.ts";
import { TaskManager } from "./task/task_manager.ts";
import { formatHostPort } from "./transfer/connection.ts";
import { createExchange } from "./transfer/exchange.ts";
import { createPieceClient } from "./transfer/piece_client.ts";
import { startUploadServer } from "./transfer/upload_server.ts";
import { lockWorkHome } from "./work_home.ts";

/** A complete task stays a member of its swarm so long after its last request. */
const LINGER_MS = 60_000;
const IDLE_CHECKS = 10;

export interface PeerOptions {
  readonly config: DaemonConfig;
  /** Absolute path of the work home. */
  readonly workHome: string;
  /** Absolute path of the folder with source plug-ins; default: `plugins` in the work home. */
  readonly pluginDir?: string | undefined;
  /** Absolute path of the Unix socket. */
  readonly socket: string;
  readonly log: Logger;
  /** How long a daemon without work stays, ms; 0 is for ever. */
  readonly aliveTimeMs: number;
  /** Default: records nothing. */
  readonly tracer?: Tracer;
}

/** Where a running daemon listens: the fields of its `ready` line. */
export interface PeerAddresses {
  readonly host_id: string;
  readonly socket: string;
  /** `HOST:PORT` */
  readonly upload: string;
  readonly proxy: string | null;
  readonly health: string | null;
}

export interface RunningPeer extends AsyncDisposable {
  readonly addresses: PeerAddresses;
  readonly tasks: TaskManager;
  /** Resolves when the daemon has had no work for its alive time. */
  readonly idle: Promise<void>;
  /** Changes the limits from now on, for what is under way too. */
  setLimits(limits: Limits): void;
}

/**
 * Starts a daemon in this process.
 *
 * @throws {LacewingError} `already_running`, `file`, `config_invalid`
 */
export async function startPeer(options: PeerOptions): Promise<RunningPeer> {
  const { config, workHome, socket, log, aliveTimeMs, tracer } = options;
  await using stack = new AsyncDisposableStack();
  const clock = systemClock;
  const random = Math.random;
  stack.use(await lockWorkHome(workHome));
  const id = await hostId(workHome);
  const events = new PieceEvents();
  const dataDir = config.dataDir === "" ? `${workHome}/data` : config.dataDir;
  const store = stack.use(await openDiskStore({ dataDir, config: storageConfig(config), log: log.room("storage") }));
  const origins = await sourceConfig(config);
  const plugins = stack.use(new SourcePlugins(options.pluginDir ?? `${workHome}/plugins`, BUILT_IN_SCHEMES));
  const source = openSource(config, { clock, random, log: log.room("source"), origins, plugins, stack });
  const client = stack.use(createPieceClient({ hostId: id, clock, log: log.room("transfer") }));
  const exchange = stack.use(createExchange({ hostId: id, clock, random, log: log.room("transfer") }));
  const uploadLimiter = new RateLimiter(clock, config.upload.rateLimit);
  const upload = stack.use(startUploadServer({
    provider: stack.use(createPieceProvider(store, events)),
    limiter: uploadLimiter,
    clock,
    log: log.room("upload"),
    tracer,
  }, {
    listenIP: config.host.listenIP,
    port: config.upload.tcpListen.port,
    concurrent: config.upload.concurrent,
    hostId: id,
  }));
  events.onOpened((taskId, generation) => upload.announce(taskId, generation));

  const facts = await hostFacts(config, id, upload.address.port);
  const schedulers = schedulerUrls(config);
  const swarm = schedulers === null ? null : new SchedulerSet({
    clock,
    random,
    log: log.room("scheduler"),
    host: () => facts,
    joinToken: config.scheduler.manager.joinToken,
    held: () => heldTasks(store),
    load: () => ({
      uploads: upload.stats().activeUploads,
      downloads: tasks.activeCount,
      free_bytes: store.usage().freeBytes,
    }),
    onOrder: (message, send) => orders.handle(message, send),
    digestsOf: async (taskId, generation) => {
      await using task = await store.open(taskId);
      return task?.info.meta.generation === generation ? task.digests() : [];
    },
  }, schedulers);
  const traffic = { sourceBytes: 0, wastedBytes: 0 };
  const totalLimiter = new RateLimiter(clock, config.download.totalRateLimit);
  const changes = storeChanges(new HeldNews(store), (held, dropped) => swarm?.tell(held, dropped));
  const tasks: TaskManager = stack.use(
    new TaskManager({
      store,
      source,
      client,
      exchange,
      swarm: swarm ?? noSwarm,
      events,
      totalLimiter,
      traffic,
      clock,
      random,
      log: log.room("task"),
      tempDir: `${dataDir}/tmp`,
      onStored: changes,
      tracer,
    }, {
      place: { hostId: id, idc: config.host.idc },
      concurrentPieceCount: config.download.concurrentPieceCount,
      maxConnections: config.download.source.maxConnections,
      perTaskRateLimit: config.download.perPeerRateLimit,
      autoBackSource: !config.scheduler.disableAutoBackSource,
      lingerMs: LINGER_MS,
    }),
  );
  if (swarm !== null) stack.use(swarm);
  const orders = stack.use(new Orders({ tasks, log: log.room("order") }));
  const ipc = stack.use(
    await startIpcServer({
      tasks,
      status: () => ({
        version: VERSION,
        host_id: id,
        tasks: tasks.activeCount,
        schedulers: swarm?.upCount ?? 0,
        pid: Deno.pid,
        proxy: proxyFacts(config, proxy),
      }),
      explain: (request) =>
        explain(request, {
          hostId: id,
          proxy: config.proxy === undefined ? null : proxySettings(config.proxy, origins),
          stored: () => store.list(),
          find: swarm === null ? null : (taskIds) => swarm.find(taskIds),
        }),
      log: log.room("ipc"),
      dataDir,
    }, { path: socket }),
  );
  const lag = stack.use(new LoopLag());
  const health = stack.use(startHealthServer(() => ({
    tasks_active: tasks.activeCount,
    uploads_active: upload.stats().activeUploads,
    uploaded_bytes: upload.stats().sentBytes,
    source_bytes: traffic.sourceBytes,
    wasted_bytes: traffic.wastedBytes,
    stored_bytes: store.usage().storedBytes,
    free_bytes: store.usage().freeBytes,
    schedulers_up: swarm?.upCount ?? 0,
    resident_bytes: Deno.memoryUsage().rss,
    loop_stall_seconds: lag.take(),
  }), { hostname: "127.0.0.1", port: config.health.tcpListen.port }));
  stack.use(repeat(config.gcInterval, async () => {
    const removed = await store.collectGarbage();
    for (const taskId of removed) changes(taskId);
  }, log));

  const proxy = config.proxy === undefined ? null : stack.use(
    startProxy(
      { tasks, source, clock, log: log.room("proxy"), publicsPath: `${workHome}/public` },
      proxySettings(config.proxy, origins),
    ),
  );

  const idle = Promise.withResolvers<void>();
  const isBusy = () =>
    ipc.connectionCount > 0 || tasks.busyCount > 0 || orders.activeCount > 0 || upload.stats().activeUploads > 0 ||
    (proxy?.activeCount ?? 0) > 0;
  stack.use(watchIdle(isBusy, {
    aliveTimeMs,
    onIdle: () => {
      log.info(`leaving after ${formatDuration(aliveTimeMs)} without work`);
      idle.resolve();
    },
  }));
  const owned = stack.move();
  return {
    addresses: {
      host_id: id,
      socket,
      upload: formatHostPort(upload.address),
      proxy: proxy?.address ?? null,
      health: health.address,
    },
    tasks,
    idle: idle.promise,
    setLimits: ({ total, perTask, upload }) => {
      totalLimiter.setRate(total);
      tasks.setPerTaskRate(perTask);
      uploadLimiter.setRate(upload);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** What `status` says of the proxy; null where it is off. */
function proxyFacts(config: DaemonConfig, proxy: Proxy | null): ProxyFacts | null {
  if (config.proxy === undefined || proxy === null) return null;
  const { registryMirror: { url, dynamic, registries }, basicAuth } = config.proxy;
  const shown = new URL(url);
  [shown.username, shown.password] = ["", ""];
  return {
    address: proxy.address,
    url: shown.href,
    dynamic,
    registries: registries.map(({ host }) => host),
    password: basicAuth.username !== "" || basicAuth.password !== "",
  };
}

function storageConfig({ storage }: DaemonConfig) {
  return {
    taskExpireTimeMs: storage.taskExpireTime,
    diskGCThresholdBytes: storage.diskGCThreshold,
    diskGCThresholdPercent: storage.diskGCThresholdPercent,
    keepStorage: storage.keepStorage,
  };
}

/** How origins are read; registries that are configured as insecure have a source of their own. */
function openSource(
  config: DaemonConfig,
  { stack, origins, plugins, ...deps }: Omit<HttpSourceOptions, "config"> & {
    stack: AsyncDisposableStack;
    plugins: SourcePlugins;
    origins: HttpSourceConfig;
  },
): Source {
  const verified = stack.use(createSources({ ...deps, config: origins }, plugins));
  if (config.proxy?.registryMirror.insecure !== true) return verified;
  const unverified = stack.use(createSources({ ...deps, config: { ...origins, insecure: true } }));
  return withUnverified(verified, unverified, config.proxy);
}

async function sourceConfig({ download: { source }, proxy }: DaemonConfig): Promise<HttpSourceConfig> {
  const caCerts = await readCertificates(source.caCerts, "download.source.caCerts");
  // The blobs that the mirror asks for are read by the same source.
  if (proxy !== undefined) caCerts.push(...await mirrorCertificates(proxy));
  const { insecure, allowPrivateNetworks, idleTimeout: idleTimeoutMs } = source;
  return { caCerts, insecure, allowPrivateNetworks, idleTimeoutMs };
}

async function hostFacts(config: DaemonConfig, id: string, uploadPort: number): Promise<HostFacts> {
  const { host, scheduler } = config;
  const { seedPeer } = scheduler.manager;
  return {
    id,
    hostname: host.hostname === "" ? Deno.hostname() : host.hostname,
    ip: await advertisedIp({ ...host, managerUrl: scheduler.manager.addr ?? null }),
    upload_port: uploadPort,
    type: seedPeer.enable ? "seed" : "normal",
    idc: host.idc,
    location: host.location,
    platform: platform(),
    version: VERSION,
    ...(seedPeer.enable ? { cluster_id: seedPeer.clusterID } : {}),
  };
}

/** Null when the daemon works alone. */
function schedulerUrls({ scheduler }: DaemonConfig) {
  const { manager, netAddrs } = scheduler;
  if (netAddrs.length > 0) {
    return { managerUrl: null, refreshIntervalMs: 0, fixedUrls: fixedSchedulerUrls(netAddrs, SCHEDULER_PATH) };
  }
  if (!manager.enable || manager.addr === undefined) return null;
  return { managerUrl: manager.addr, refreshIntervalMs: manager.refreshInterval, fixedUrls: [] };
}

/** Tells the schedulers of changed tasks, once per event-loop turn. */
function storeChanges(
  news: HeldNews,
  tell: (held: ReturnType<typeof heldTasks>, dropped: string[]) => void,
) {
  const changed = new Set<string>();
  return (taskId: string) => {
    if (changed.size === 0) {
      setTimeout(() => {
        const { held, dropped } = news.take(changed);
        changed.clear();
        tell(held, dropped);
      }, 0);
    }
    changed.add(taskId);
  };
}

function repeat(intervalMs: number, work: () => Promise<void>, log: Logger): AsyncDisposable {
  let running: Promise<void> = Promise.resolve();
  const timer = setInterval(() => {
    running = work().catch((error) => log.warn("collecting garbage failed", { error }));
  }, Math.max(intervalMs, 1000));
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await running;
    },
  };
}

function watchIdle(
  isBusy: () => boolean,
  { aliveTimeMs, onIdle }: { aliveTimeMs: number; onIdle: () => void },
): Disposable {
  if (aliveTimeMs === 0) return { [Symbol.dispose]() {} };
  let idleChecks = 0;
  const timer = setInterval(() => {
    idleChecks = isBusy() ? 0 : idleChecks + 1;
    if (idleChecks >= IDLE_CHECKS) onIdle();
  }, aliveTimeMs / IDLE_CHECKS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
