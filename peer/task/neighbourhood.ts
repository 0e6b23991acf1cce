/**
 * Whom a host knows of one task, from one session to the next: its neighbours,
 * and who of its idc brings pieces over from others. Pure.
 */
import type { Neighbour } from "../core/wire/scheduler.ts";
import type { Session } from "./session.ts";

/** What of a session hears of it. */
export type Hearer = Pick<Session, "neighbours" | "setCarriers">;

export class Neighbourhood {
  readonly #neighbours = new Map<string, Neighbour>();
  #carriers: readonly string[] | null = null;

  get size(): number {
    return this.#neighbours.size;
  }

  /** `IP:PORT` of a neighbour; of a stranger the id. */
  nameOf(hostId: string): string {
    return this.#neighbours.get(hostId)?.address ?? hostId;
  }

  /** Ids of those that are none of these. */
  allBut(neighbours: readonly Neighbour[]): string[] {
    const present = new Set(neighbours.map(({ host_id }) => host_id));
    return [...this.#neighbours.keys()].filter((id) => !present.has(id));
  }

  change(add: readonly Neighbour[], remove: readonly string[], session: Hearer | null): void {
    for (const hostId of remove) this.#neighbours.delete(hostId);
    for (const neighbour of add) this.#neighbours.set(neighbour.host_id, neighbour);
    session?.neighbours(add, remove);
  }

  /** @param hostIds null where all of the idc bring pieces over */
  setCarriers(hostIds: readonly string[] | null, session: Hearer | null): void {
    this.#carriers = hostIds;
    session?.setCarriers(hostIds);
  }

  /** A session begins. */
  introduce(session: Hearer): void {
    session.setCarriers(this.#carriers);
    session.neighbours([...this.#neighbours.values()], []);
  }
}
