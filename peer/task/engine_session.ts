/**
 * Begins the session of one generation for an engine: binds what the session
 * reads, wants and allows to the engine's requests, and its words for the
 * scheduler to the membership of the moment.
 */
import type { Limiter } from "../core/rate_limit.ts";
import type { TaskSpec } from "../core/wire/scheduler.ts";
import type { StoredTask } from "../storage/piece_store.ts";
import type { EngineConfig, EngineDeps } from "./engine_deps.ts";
import type { Requests } from "./requests.ts";
import { Session, type SessionEvents } from "./session.ts";
import type { JoinState, Membership } from "./swarm.ts";

export interface SessionContext {
  readonly deps: EngineDeps;
  readonly config: EngineConfig;
  readonly spec: TaskSpec;
  /** Of the task, and its share of the daemon's. */
  readonly limiters: readonly Limiter[];
  readonly requests: Requests;
  readonly membership: () => Membership | null;
}

export function startSession(
  { deps, config, spec, limiters, requests, membership }: SessionContext,
  store: StoredTask,
  events: Pick<SessionEvents, "onHeld" | "onLeaseEnd" | "onFatal">,
): Session {
  const { generation } = store.info.meta;
  return new Session({ ...deps, limiters }, {
    spec,
    store,
    headers: () => requests.headers,
    canSource: () => requests.canSource && config.autoBackSource,
    partial: () => requests.isPartial,
    place: config.place ?? { hostId: "", idc: "" },
    connections: config.maxConnections,
  }, {
    ...events,
    onRead: (pieces) => membership()?.pieces(generation, pieces),
    onStarving: (pieces) => pieces.length > 0 && membership()?.starving(generation, pieces),
    onWrong: (piece, hostId) => {
      deps.log.warn("neighbour sent a wrong piece", { task_id: spec.task_id, host_id: hostId, piece });
      membership()?.badPeer(hostId, piece);
    },
  });
}

/** What a scheduler is told of this host's part when it joins. */
export function joinStateOf(requests: Requests, session: Session | null, stored: StoredTask | null): JoinState {
  const meta = session?.meta ?? stored?.info.meta;
  const { traceparent } = requests;
  return {
    ...(meta === undefined ? {} : { meta }),
    ...(traceparent === undefined ? {} : { traceparent }),
    pieceCount: session?.picker.heldCount ?? stored?.info.pieceCount ?? 0,
    canSource: requests.canSource,
    anonymous: requests.headers.length === 0,
    partial: requests.isPartial,
  };
}
