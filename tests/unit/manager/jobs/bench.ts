/** A worker with a store, fake swarm and registry, and a clock that the test moves. */
import { silentLogger } from "../../../../peer/core/log.ts";
import { PreheatRunner } from "../../../../manager/jobs/preheat.ts";
import { JobService } from "../../../../manager/jobs/service.ts";
import { JobWatch } from "../../../../manager/jobs/watch.ts";
import { JobWorker } from "../../../../manager/jobs/worker.ts";
import { jobRequest } from "../../../../manager/jobs/job_request.ts";
import { openStore, type Store } from "../../../../manager/store/store.ts";
import { FakeClock } from "../../peer/core/fake_clock.ts";
import { FakeResolver, FakeSchedulers } from "../fakes.ts";

export interface Bench extends AsyncDisposable {
  readonly store: Store;
  readonly schedulers: FakeSchedulers;
  readonly resolver: FakeResolver;
  readonly clock: FakeClock;
  readonly watch: JobWatch;
  readonly worker: JobWorker;
  readonly service: JobService;
  readonly runner: PreheatRunner;
  /** Creates a job from a body as the API takes it, and lets the worker begin. */
  create(body: unknown): Promise<number>;
}

export async function openBench(
  {
    path = ":memory:",
    startMs = 1_900_000_000_000,
    hostsBackAtMs = 0,
    retries = 2,
    concurrentTasks = 3,
    running = true,
  }: {
    path?: string;
    startMs?: number;
    hostsBackAtMs?: number;
    retries?: number;
    concurrentTasks?: number;
    running?: boolean;
  } = {},
): Promise<Bench> {
  const clock = new FakeClock();
  const now = () => startMs + clock.nowMs();
  const store = await openStore(path, now);
  const schedulers = new FakeSchedulers();
  const resolver = new FakeResolver();
  const watch = new JobWatch();
  const deps = { store, schedulers, resolver, watch, clock, random: () => 0, log: silentLogger };
  const runner = new PreheatRunner(deps, { concurrentTasks, retries, hostsBackAtMs });
  const worker = new JobWorker({ ...deps, preheat: runner, now }, { owner: crypto.randomUUID(), keepMs: 3_600_000 });
  const service = new JobService({ store, watch, worker }, { timeoutSeconds: 600 });
  if (running) worker.start();
  return {
    store,
    schedulers,
    resolver,
    clock,
    watch,
    worker,
    service,
    runner,
    async create(body) {
      const { id } = await service.create(jobRequest.parse(body));
      await clock.advance(0);
      await clock.advance(0);
      return id;
    },
    async [Symbol.asyncDispose]() {
      await worker[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
}

export function fileJob(urls: string | string[], args: Record<string, unknown> = {}) {
  return { type: "preheat", args: { type: "file", urls: [urls].flat(), ...args } };
}

export const IMAGE_URL = "http://registry.example.com/v2/app/manifests/latest";

export function imageJob(args: Record<string, unknown> = {}) {
  return { type: "preheat", args: { type: "image", url: IMAGE_URL, ...args } };
}
