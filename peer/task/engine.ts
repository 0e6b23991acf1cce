/**
 * One task on this host: opens what is on disk, joins the swarm, keeps one
 * session per generation and serves every request for the task from it.
 * Words of the scheduler are handled one after the other, in their order.
 *
 * Keeps: pieces of two generations never mix; when no scheduler answers, the
 * neighbours known go on and then the origin is read by this host itself.
 */
import { digestInUrl } from "../core/digest.ts";
import { fromWireError, toWireError } from "../core/errors.ts";
import type { Neighbour, PieceDigest, TaskMeta, TaskSpec, WireError } from "../core/wire/scheduler.ts";
import type { StoredTask } from "../storage/piece_store.ts";
import type { EngineConfig, EngineDeps } from "./engine_deps.ts";
import { changedTooOften, contradicted, isChanged, noHolder } from "./engine_errors.ts";
import { joinStateOf, type SessionContext, startSession } from "./engine_session.ts";
import { isStillAtOrigin, needsNoCheck } from "./freshness.ts";
import type { PieceOrigin } from "./ledger.ts";
import { Neighbourhood } from "./neighbourhood.ts";
import { probe, takeProbe } from "./probe.ts";
import { Requests } from "./requests.ts";
import { Run } from "./run.ts";
import type { Session } from "./session.ts";
import type { JoinState, Lease, Membership, SwarmListener } from "./swarm.ts";
import type { TaskRequest } from "./task.ts";
import { TaskDisk } from "./task_disk.ts";
import { TaskRate } from "./task_rate.ts";
import { Verifications } from "./verifications.ts";

/** New generations that one task takes on before it fails. */
const RESTARTS_MAX = 3;
/** Lease id of what this host reads without a scheduler. */
const OWN_LEASE = -1;

export class Engine implements SwarmListener {
  readonly #requests = new Requests();
  readonly #rate: TaskRate;
  readonly #stop = new AbortController();
  readonly #around = new Neighbourhood();
  readonly #verifications: Verifications;
  readonly #context: SessionContext;
  readonly #disk: TaskDisk;
  #membership: Membership | null = null;
  #session: Session | null = null;
  /** Whether the session's generation is what the origin has, as far as it is to be asked. */
  #confirmed: Promise<boolean> = Promise.resolve(true);
  /** A generation that was on this disk and is no longer at the origin. */
  #stale: string | null = null;
  #queue: Promise<void> = Promise.resolve();
  #managed = false;
  #down = false;
  #opened = false;
  #probing = false;
  #restarts = 0;
  #failure: unknown = undefined;
  #lingerTimer: ReturnType<typeof setTimeout> | undefined;
  #closing: Promise<void> | null = null;

  constructor(
    private readonly deps: EngineDeps,
    private readonly spec: TaskSpec,
    private readonly config: EngineConfig,
    private readonly hooks: { after: Promise<void> | undefined; onClosed: () => void },
  ) {
    this.#rate = new TaskRate(deps, this.#requests, config.perTaskRateLimit);
    this.#disk = new TaskDisk(deps, spec);
    const membership = () => this.#membership;
    this.#context = { deps, config, spec, limiters: this.#rate.limiters, requests: this.#requests, membership };
    this.#verifications = new Verifications(this.#stop.signal, (session, error) => {
      if (session === this.#session) this.#fail(error, { drop: true });
    });
  }

  /** Resolves when the task has ended on this host; null while requests can be added. */
  get closed(): Promise<void> | null {
    return this.#closing;
  }

  /** Whether a request waits for the task. */
  get isBusy(): boolean {
    return this.#requests.size > 0;
  }

  /** Changes the limit of one task, bytes per second; 0 is no limit. */
  setPerTaskRate(bytesPerSecond: number): void {
    this.#rate.setPerTask(bytesPerSecond);
  }

  /** Adds a request. */
  add(request: TaskRequest, signal: AbortSignal): Run {
    clearTimeout(this.#lingerTimer);
    const before = this.joinState();
    const run = new Run(this.spec.task_id, request, {
      onDisposed: (ended) => this.#remove(ended),
      verify: (session, what, runSignal) => this.#verifications.verify(session, what, runSignal),
      isCurrent: (session) => session === this.#session ? this.#confirmed : Promise.resolve(false),
      hostName: (hostId) => this.#around.nameOf(hostId),
    }, signal);
    this.#requests.add(run);
    run.finished.catch(() => this.#remove(run));
    this.#rate.update();
    if (this.#session !== null) run.attach(this.#session);
    const after = this.joinState();
    if (after.canSource !== before.canSource || after.partial !== before.partial) this.#membership?.update();
    if (this.#down) this.#session?.setManaged(false);
    if (!this.#opened) this.#enqueue(() => this.#open());
    this.#opened = true;
    return run;
  }

  /** Ends the task on this host; what is on disk stays. */
  close(reason: unknown = new DOMException("The task was stopped", "AbortError")): Promise<void> {
    this.#closing ??= this.#shutDown(reason);
    return this.#closing;
  }

  joinState(): JoinState {
    return joinStateOf(this.#requests, this.#session, this.#disk.stored);
  }

  onTask(meta: TaskMeta | null, neighbours: readonly Neighbour[], { confirm } = { confirm: false }): void {
    this.#enqueue(async () => {
      this.#managed = true;
      this.#down = false;
      this.#changeNeighbours(neighbours, this.#around.allBut(neighbours));
      if (meta !== null && meta.generation === this.#stale) return this.#membership?.checked(meta.generation, true);
      if (meta !== null) await this.#useMeta(meta);
      this.#session?.setManaged(true);
      if (confirm && this.#session !== null) this.#confirmed = this.#confirm(this.#session);
      if (this.#isStuck) this.#fail(noHolder(this.spec.url, "no host of the cluster has it"));
      if (this.#session?.isComplete) this.#membership?.complete(this.#session.meta.generation);
    });
  }

  onMeta(meta: TaskMeta): void {
    this.#enqueue(async () => {
      await this.#useMeta(meta);
      this.#session?.setManaged(!this.#down);
    });
  }

  onNeighbours(add: readonly Neighbour[], remove: readonly string[]): void {
    this.#enqueue(() => this.#changeNeighbours(add, remove));
  }

  onCarriers(hostIds: readonly string[] | null): void {
    this.#enqueue(() => this.#around.setCarriers(hostIds, this.#session));
  }

  onDigests(generation: string, pieces: readonly PieceDigest[]): void {
    this.#enqueue(() => {
      if (this.#session?.meta.generation !== generation) return;
      const conflicts = this.#session.learn(pieces);
      if (conflicts.length > 0) this.#fail(contradicted(conflicts[0]), { drop: true });
    });
  }

  onLease(lease: Lease): void {
    this.#enqueue(() => {
      if (lease.generation === null) return void this.#probe(lease.leaseId);
      if (this.#session?.meta.generation === lease.generation) return this.#session.lease(lease);
      this.#membership?.leaseEnd(lease.leaseId, { code: "canceled", message: "This host has another generation" });
    });
  }

  onRevoke(leaseId: number): void {
    this.#enqueue(() => this.#session?.revoke(leaseId));
  }

  onWantDigests(generation: string): void {
    this.#enqueue(() => {
      if (this.#session?.meta.generation === generation) this.#membership?.pieces(generation, this.#session.digests());
    });
  }

  onFailed(error: WireError): void {
    this.#enqueue(() => this.#session?.isComplete ? undefined : this.#fail(fromWireError(error)));
  }

  onDown(): void {
    this.#enqueue(async () => {
      this.#managed = false;
      this.#down = true;
      if (this.#session === null && this.#disk.stored !== null) await this.#begin(this.#disk.stored);
      this.#session?.setManaged(false);
      if (this.#session?.isComplete || this.#failure !== undefined || this.#requests.size === 0) return;
      if (!this.#requests.canSource || !this.config.autoBackSource) {
        if (this.#around.size > 0 && this.#session !== null) return;
        return this.#fail(noHolder(this.spec.url, "no scheduler answers and no neighbour is known"));
      }
      if (this.#session === null) void this.#probe(OWN_LEASE);
    });
  }

  async #open(): Promise<void> {
    await this.hooks.after;
    const stored = await this.#disk.open();
    if (stored?.info.complete) {
      const ask = this.#requests.canSource && !needsNoCheck(stored, this.spec.url);
      if (!ask || await isStillAtOrigin(stored, this.#origin)) return await this.#begin(stored);
      this.deps.log.info("the content changed at the origin", { task_id: this.spec.task_id });
      this.#stale = stored.info.meta.generation;
      await this.#dropStored();
    }
    if (this.#stop.signal.aborted) return;
    this.#membership = this.deps.swarm.join(this.spec, this);
  }

  get #origin() {
    return { source: this.deps.source, url: this.spec.url, headers: this.#requests.headers, signal: this.#stop.signal };
  }

  /** Asks the origin, while the download goes on, whether what the others have is still what it has. */
  async #confirm(session: Session): Promise<boolean> {
    const { generation } = session.meta;
    const isCurrent = !this.#requests.canSource || await isStillAtOrigin(session.store, this.#origin);
    if (isCurrent) this.#membership?.checked(generation, false);
    else {
      this.#enqueue(async () => {
        if (session !== this.#session || !this.#mayRestart()) return;
        await this.#dropStored();
        this.#membership?.checked(generation, true);
      });
    }
    return isCurrent;
  }

  /** Takes up a generation: the one on disk, or an empty one. */
  async #useMeta(meta: TaskMeta): Promise<void> {
    if (this.#session?.meta.generation === meta.generation || this.#failure !== undefined) return;
    if (this.#session !== null) {
      if (!this.#mayRestart()) return;
      await this.#endSession();
    }
    await this.#begin(await this.#disk.take(meta));
  }

  async #begin(stored: StoredTask): Promise<void> {
    if (this.#stop.signal.aborted) return;
    const session = startSession(this.#context, stored, {
      onHeld: (number, origin) => this.#held(session, number, origin),
      onLeaseEnd: (leaseId, error) => this.#leaseEnded(session, leaseId, error),
      onFatal: (error) => isChanged(error) ? this.#startOver() : this.#fail(error),
    });
    this.#session = session;
    this.#confirmed = Promise.resolve(true);
    this.deps.events.opened(this.spec.task_id, session.meta.generation);
    this.deps.onStored(this.spec.task_id);
    for (const run of this.#requests) run.attach(session);
    this.#around.introduce(session);
    if (session.isComplete) await this.#completed(session);
  }

  /** Asks the origin for the beginning: what the content is, and its first bytes. */
  async #probe(leaseId: number): Promise<void> {
    if (this.#probing || this.#stop.signal.aborted) return;
    this.#probing = true;
    try {
      const found = await probe({ url: this.spec.url, headers: this.#requests.headers }, {
        ...this.deps,
        limiters: this.#rate.limiters,
        signal: this.#stop.signal,
      });
      this.#probing = false;
      this.#enqueue(async () => {
        await this.#useMeta(found.meta);
        const session = this.#session;
        if (session === null || session.meta.generation !== found.meta.generation) {
          return await found.body?.[Symbol.asyncDispose]();
        }
        this.#membership?.meta(found.meta);
        if (!await takeProbe(found, session, leaseId)) this.#leaseEnded(session, leaseId, undefined);
        // Only now: alone, this host would read the same pieces a second time.
        session.setManaged(!this.#down);
      });
    } catch (error) {
      this.#probing = false;
      if (this.#stop.signal.aborted) return;
      if (leaseId === OWN_LEASE) this.#fail(error);
      else this.#membership?.leaseEnd(leaseId, toWireError(error));
    }
  }

  #leaseEnded(session: Session, leaseId: number, error: unknown): void {
    if (session !== this.#session) return;
    if (leaseId !== OWN_LEASE) {
      return this.#membership?.leaseEnd(leaseId, error === undefined ? undefined : toWireError(error));
    }
    if (isChanged(error)) this.#startOver();
    else if (error !== undefined) {
      this.deps.log.info("reading the origin failed", { task_id: this.spec.task_id, error });
    }
  }

  /** The content changed while this host read it alone: throws away what it has and reads the new one. */
  #startOver(): void {
    if (!this.#mayRestart()) return;
    this.#enqueue(async () => {
      await this.#dropStored();
      void this.#probe(OWN_LEASE);
    });
  }

  #mayRestart(): boolean {
    this.#restarts += 1;
    if (this.#restarts <= RESTARTS_MAX) return true;
    this.#fail(changedTooOften(this.spec.url, this.#restarts), { drop: true });
    return false;
  }

  #held(session: Session, number: number, origin: PieceOrigin): void {
    this.deps.events.held(this.spec.task_id, session.meta.generation, number);
    for (const run of this.#requests) run.pieceHeld(number, origin);
    if (session.isComplete) this.#enqueue(() => this.#completed(session));
  }

  /** Every piece is here: the whole content's digest where its URL promises one, then word to the scheduler. */
  async #completed(session: Session): Promise<void> {
    if (session !== this.#session) return;
    if (!session.store.info.complete) {
      const want = digestInUrl(this.spec.url);
      try {
        const range = { offset: 0, length: session.layout.contentLength };
        session.store.complete(
          want === null ? null : await this.#verifications.verify(session, { want, range }, this.#stop.signal),
        );
      } catch (error) {
        return this.#fail(error, { drop: true });
      }
    }
    this.#membership?.complete(session.meta.generation);
    this.deps.onStored(this.spec.task_id);
    this.#lingerIfUnused();
  }

  #changeNeighbours(add: readonly Neighbour[], remove: readonly string[]): void {
    this.#around.change(add, remove, this.#session);
    if (this.#isStuck && remove.length > 0) {
      this.#fail(noHolder(this.spec.url, "the last host that has it is gone"));
    }
  }

  /** Whether somebody waits, nobody around has the content, and the origin must not be read. */
  get #isStuck(): boolean {
    if (!this.#managed || this.#requests.size === 0 || this.#requests.canSource) return false;
    return this.#around.size === 0 && this.#session?.isComplete !== true;
  }

  #remove(run: Run): void {
    if (!this.#requests.delete(run)) return;
    this.#rate.update();
    if (this.#requests.size > 0) return;
    const isUseful = this.#session?.isComplete || run.hasSucceeded;
    if (!isUseful || this.#failure !== undefined) return void this.close();
    this.#membership?.update();
    this.#lingerIfUnused();
  }

  #lingerIfUnused(): void {
    if (this.#requests.size > 0 || this.#closing !== null) return;
    clearTimeout(this.#lingerTimer);
    if (this.#membership === null) return void this.close();
    this.#lingerTimer = setTimeout(() => void this.close(), this.config.lingerMs);
  }

  #fail(error: unknown, { drop = false } = {}): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.deps.log.info("task failed", { task_id: this.spec.task_id, error });
    for (const run of this.#requests) run.fail(error);
    if (drop) this.#enqueue(() => this.#dropStored());
    void this.close(error);
  }

  async #shutDown(reason: unknown): Promise<void> {
    clearTimeout(this.#lingerTimer);
    this.#stop.abort(reason);
    this.#membership?.leave();
    for (const run of this.#requests) run.fail(reason);
    await this.#queue;
    await this.#endSession();
    await this.#disk.close();
    this.hooks.onClosed();
  }

  async #endSession(): Promise<void> {
    const session = this.#session;
    this.#session = null;
    await session?.stop();
  }

  async #dropStored(): Promise<void> {
    await this.#endSession();
    await this.#disk.drop();
  }

  #enqueue(work: () => void | undefined | Promise<void>): void {
    this.#queue = this.#queue.then(work).catch((error) => this.#fail(error));
  }
}
