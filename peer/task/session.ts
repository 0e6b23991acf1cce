/**
 * One generation of a task while it is downloaded: ties picker, ledger,
 * neighbours and origin together, and notices when this host starves. Knows
 * neither requests nor schedulers; the engine passes their words on.
 */
import { LacewingError } from "../core/errors.ts";
import { pieceCount } from "../core/piece.ts";
import type { Neighbour, PieceDigest, TaskMeta, TaskSpec } from "../core/wire/scheduler.ts";
import type { SourceBody } from "../source/source.ts";
import type { StoredTask } from "../storage/piece_store.ts";
import type { EngineDeps } from "./engine_deps.ts";
import { ArrivalPace, PATIENCE_MS_MAX } from "./arrival_pace.ts";
import type { ArrivalListener } from "./digest_follower.ts";
import { Ledger, type PieceOrigin } from "./ledger.ts";
import { PeerWork, type PeerWorkDeps } from "./peer_work.ts";
import { PiecePicker } from "./piece_picker.ts";
import { SourceWork, type SourceWorkDeps } from "./source_work.ts";
import type { Lease } from "./swarm.ts";

/** How often a session looks whether it starves, and after how long it says so (again). */
const CHECK_INTERVAL_MS = 100;
/** A check that comes late tells of this process, not of its neighbours, whose words wait to be read: so much of the time counts. */
const CHECK_STEP_MS_MAX = 150;
const PARTIAL_STARVING_AFTER_MS = 50;
const STARVING_AGAIN_MS = 1000;
/** A scheduler that lets this host starve so long is taken for dead. */
const ALONE_AFTER_MS = 30_000;
const STARVING_PIECES = 64;

export interface SessionEvents {
  onHeld(number: number, origin: PieceOrigin): void;
  /** Pieces read from the origin. */
  onRead(pieces: readonly PieceDigest[]): void;
  onLeaseEnd(leaseId: number, error: unknown): void;
  onStarving(pieces: readonly number[]): void;
  onWrong(number: number, hostId: string): void;
  onFatal(error: unknown): void;
}

export interface SessionOptions {
  readonly spec: TaskSpec;
  readonly store: StoredTask;
  readonly headers: () => readonly (readonly [string, string])[];
  /** Whether this host may read the origin at all, now. */
  readonly canSource: () => boolean;
  readonly partial: () => boolean;
  /** This host and where it is. */
  readonly place: { readonly hostId: string; readonly idc: string };
  readonly connections: number;
}

export class Session {
  readonly meta: TaskMeta;
  readonly store: StoredTask;
  readonly picker: PiecePicker;
  readonly #ledger: Ledger;
  readonly #peers: PeerWork;
  readonly #sources: SourceWork;
  readonly #listeners = new Set<ArrivalListener>();
  readonly #waiters = new Map<number, Set<() => void>>();
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #forget: () => void;
  /** How long nothing has come; null while something is under way. */
  #idleMs: number | null = null;
  readonly #pace = new ArrivalPace();
  #checkedAtMs: number;
  #starvedAtMs = 0;
  #managed = false;

  constructor(
    private readonly deps: PeerWorkDeps & SourceWorkDeps & Pick<EngineDeps, "traffic" | "events">,
    private readonly options: SessionOptions,
    private readonly events: SessionEvents,
  ) {
    this.store = options.store;
    this.meta = options.store.info.meta;
    const count = pieceCount(this.layout);
    this.picker = new PiecePicker({ pieceCount: count, random: deps.random });
    const onWrong = (number: number, hostId: string) => this.#wrong(number, hostId);
    this.#ledger = new Ledger(this.store, this.meta, this.picker, {
      onHeld: (number, origin) => this.#held(number, origin),
      onWrong,
    });
    this.#peers = new PeerWork(deps, {
      taskId: options.spec.task_id,
      place: options.place,
      ledger: this.#ledger,
      picker: this.picker,
      onWrong,
      onWasted: (bytes) => deps.traffic.wastedBytes += bytes,
      onSettled: () => this.#sources.pump(),
      onFatal: (error: LacewingError) => events.onFatal(error),
    });
    this.#sources = new SourceWork(deps, {
      url: options.spec.url,
      headers: options.headers,
      ledger: this.#ledger,
      picker: this.picker,
      connections: options.connections,
      onPiece: (number, sha256) => events.onRead([[number, sha256]]),
      onBytes: (length) => deps.traffic.sourceBytes += length,
      readBytes: () => deps.traffic.sourceBytes,
      onWritten: (bytes, offset) => {
        for (const listener of this.#listeners) listener.written(bytes, offset);
      },
      onLeaseEnd: (leaseId, error) => {
        events.onLeaseEnd(leaseId, error);
        this.#pump();
      },
      onFatal: (error) => events.onFatal(error),
      cancelPeers: (numbers) => this.#peers.cancel(numbers),
      canSource: options.canSource,
      isServed: () => this.#peers.inFlight > 0,
    });
    this.#forget = deps.events.knows(
      options.spec.task_id,
      this.meta.generation,
      (hostId, piece) => this.picker.isOffered(hostId, piece),
    );
    this.#checkedAtMs = deps.clock.nowMs();
    this.#timer = setInterval(() => this.#check(), CHECK_INTERVAL_MS);
  }

  get layout(): { contentLength: number; pieceLength: number } {
    return { contentLength: this.meta.content_length, pieceLength: this.meta.piece_length };
  }

  get isComplete(): boolean {
    return this.#ledger.isComplete;
  }

  /** Pieces from `first` on are wanted from now on. */
  want(first: number, count: number): void {
    this.picker.want(first, count);
    this.#pump();
  }

  /** A reader waits for pieces from `first` on. */
  setWindow(reader: unknown, first: number, count: number): void {
    this.picker.setWindow(reader, first, count);
    this.#pump();
  }

  neighbours(add: readonly Neighbour[], remove: readonly string[]): void {
    this.#peers.update(add, remove);
  }

  /** @param hostIds who of this idc brings pieces over; null where all do */
  setCarriers(hostIds: readonly string[] | null): void {
    this.#peers.setCarriers(hostIds);
  }

  /** @returns pieces on disk here that contradict the scheduler's list */
  learn(pieces: readonly PieceDigest[]): number[] {
    const conflicts = this.#ledger.learn(pieces);
    this.#peers.pump();
    return conflicts;
  }

  /** Every piece on disk with its digest. */
  digests(): PieceDigest[] {
    return this.store.digests();
  }

  /** The bytes of a piece were written from what the origin sent. */
  acceptFromSource(number: number, sha256: string): void {
    if (this.#ledger.accept(number, sha256, { kind: "source" }) === "wrong") {
      throw new LacewingError(
        "content_changed",
        `Cannot use piece ${number} from the origin: it is not the one the other hosts have`,
      );
    }
    this.events.onRead([[number, sha256]]);
  }

  lease(lease: Lease, body?: SourceBody): void {
    this.#sources.lease(lease, body);
  }

  revoke(leaseId: number): void {
    this.#sources.revoke(leaseId);
  }

  /** Whether a scheduler coordinates the reads of the origin; if not, this host reads what it wants by itself. */
  setManaged(managed: boolean): void {
    this.#managed = managed;
    this.#ledger.setKnownOnly(!managed);
    this.#peers.setKnownOnly(!managed);
    this.#sources.setAlone(!managed && this.options.canSource());
  }

  /** Resolves when the piece is valid on disk; rejects with `signal.reason`. */
  pieceHeld(number: number, signal: AbortSignal): Promise<void> {
    if (this.picker.isHeld(number)) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const waiters = this.#waiters.get(number) ?? new Set();
      const wake = () => {
        waiters.delete(wake);
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      const onAbort = () => {
        waiters.delete(wake);
        reject(signal.reason);
      };
      if (signal.aborted) return reject(signal.reason);
      waiters.add(wake);
      this.#waiters.set(number, waiters);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** Tells of what comes from the origin. @returns the way to stop */
  onArrival(listener: ArrivalListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Ends all work; the store's handle stays open. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#forget();
    await Promise.all([this.#peers.stop(), this.#sources.stop()]);
  }

  #pump(): void {
    this.#peers.pump();
    this.#sources.pump();
  }

  #held(number: number, origin: PieceOrigin): void {
    this.#idleMs = null;
    this.#pace.arrived(this.deps.clock.nowMs());
    if (origin.kind === "source") { for (const listener of this.#listeners) listener.held(number); }
    this.events.onHeld(number, origin);
    for (const wake of this.#waiters.get(number) ?? []) wake();
    this.#waiters.delete(number);
    if (this.isComplete) clearInterval(this.#timer);
  }

  #wrong(number: number, hostId: string): void {
    this.picker.ban(hostId);
    this.#peers.update([], [hostId]);
    this.events.onWrong(number, hostId);
  }

  /** While neighbours are to send other contents here, this one waits for its turn: a second copy would take their place. */
  get #patienceMs(): number {
    return this.deps.gate.isBusy ? PATIENCE_MS_MAX : this.#pace.patienceMs;
  }

  #check(): void {
    this.#peers.look();
    this.#sources.pump();
    const busy = this.#peers.inFlight > 0 || this.#sources.activeCount > 0 || this.picker.isComplete;
    const nowMs = this.deps.clock.nowMs();
    const stepMs = Math.min(nowMs - this.#checkedAtMs, CHECK_STEP_MS_MAX);
    this.#checkedAtMs = nowMs;
    if (busy) this.#idleMs = null;
    else this.#idleMs = this.#idleMs === null ? 0 : this.#idleMs + stepMs;
    if (this.#idleMs === null) return;
    const idleMs = this.#idleMs;
    const afterMs = this.options.partial() ? PARTIAL_STARVING_AFTER_MS : this.#patienceMs;
    if (idleMs >= afterMs && this.#peers.starves()) return;
    if (!this.#managed) return;
    if (idleMs > ALONE_AFTER_MS && this.options.canSource()) {
      this.deps.log.warn("the scheduler lets this host starve: reading the origin alone", {
        task_id: this.options.spec.task_id,
      });
      return this.#sources.setAlone(true);
    }
    if (idleMs < afterMs || nowMs - this.#starvedAtMs < STARVING_AGAIN_MS) return;
    this.#starvedAtMs = nowMs;
    this.events.onStarving(this.picker.idlePieces(STARVING_PIECES));
  }
}
