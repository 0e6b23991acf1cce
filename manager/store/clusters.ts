/**
 * Scheduler clusters. Exactly one is the default, always: it is never
 * deleted, and making another one the default takes the mark from it.
 */
import type { Kysely, Selectable } from "kysely";
import { LacewingError } from "../../peer/core/errors.ts";
import type { SchedulerClustersTable, Tables } from "./schema.ts";

/** Which hosts belong to a cluster; an empty one claims none by itself. */
export interface ClusterScopes {
  readonly idc?: string;
  readonly location?: string;
  readonly cidrs?: string[];
  readonly hostnames?: string[];
}

export interface Cluster {
  readonly id: number;
  readonly name: string;
  readonly bio: string;
  readonly isDefault: boolean;
  readonly scopes: ClusterScopes;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export type ClusterChange = Partial<Pick<Cluster, "name" | "bio" | "isDefault" | "scopes">>;

export class ClusterStore {
  #snapshot: readonly Cluster[] = [];

  constructor(private readonly db: Kysely<Tables>, private readonly now: () => number) {}

  /** All of them as they were at the last change made here, for those who cannot wait. */
  get snapshot(): readonly Cluster[] {
    return this.#snapshot;
  }

  /** Reads the snapshot anew. */
  async refresh(): Promise<void> {
    this.#snapshot = await this.list();
  }

  /** All, or one page, by id. */
  async list({ limit, offset = 0 }: { limit?: number; offset?: number } = {}): Promise<Cluster[]> {
    const query = this.db.selectFrom("scheduler_clusters").selectAll().orderBy("id");
    const rows = await (limit === undefined ? query : query.limit(limit).offset(offset)).execute();
    return rows.map(fromRow);
  }

  async count(): Promise<number> {
    const row = await this.db.selectFrom("scheduler_clusters").select((eb) => eb.fn.countAll<number>().as("count"))
      .executeTakeFirstOrThrow();
    return Number(row.count);
  }

  /** @throws {LacewingError} `not_found` */
  async get(id: number): Promise<Cluster> {
    const row = await this.db.selectFrom("scheduler_clusters").selectAll().where("id", "=", id).executeTakeFirst();
    if (row === undefined) throw noCluster(id);
    return fromRow(row);
  }

  /** @throws {LacewingError} `conflict` when the name is taken. */
  async create(cluster: ClusterChange & { name: string }): Promise<Cluster> {
    const now = this.now();
    const row = await this.db.transaction().execute(async (tx) => {
      if (cluster.isDefault) await tx.updateTable("scheduler_clusters").set({ is_default: 0 }).execute();
      return await tx.insertInto("scheduler_clusters").values({
        name: cluster.name,
        bio: cluster.bio ?? "",
        is_default: cluster.isDefault ? 1 : 0,
        scopes: JSON.stringify(cluster.scopes ?? {}),
        created_at_ms: now,
        updated_at_ms: now,
      }).returningAll().executeTakeFirstOrThrow();
    });
    await this.refresh();
    return fromRow(row);
  }

  /** @throws {LacewingError} `not_found`, and `conflict` when the name is taken or the only default would cease to be one. */
  async update(id: number, change: ClusterChange): Promise<Cluster> {
    const row = await this.db.transaction().execute(async (tx) => {
      const old = await tx.selectFrom("scheduler_clusters").selectAll().where("id", "=", id).executeTakeFirst();
      if (old === undefined) throw noCluster(id);
      if (change.isDefault === false && old.is_default === 1) {
        throw new LacewingError(
          "conflict",
          `Cannot take the default mark from cluster ${id}: make another cluster the default instead`,
        );
      }
      if (change.isDefault) await tx.updateTable("scheduler_clusters").set({ is_default: 0 }).execute();
      return await tx.updateTable("scheduler_clusters").set({
        name: change.name ?? old.name,
        bio: change.bio ?? old.bio,
        is_default: (change.isDefault ?? old.is_default === 1) ? 1 : 0,
        scopes: change.scopes === undefined ? old.scopes : JSON.stringify(change.scopes),
        updated_at_ms: this.now(),
      }).where("id", "=", id).returningAll().executeTakeFirstOrThrow();
    });
    await this.refresh();
    return fromRow(row);
  }

  /** @throws {LacewingError} `not_found`, and `conflict` for the default, the last, or one that pending jobs need. */
  async remove(id: number): Promise<void> {
    await this.db.transaction().execute(async (tx) => {
      const row = await tx.selectFrom("scheduler_clusters").selectAll().where("id", "=", id).executeTakeFirst();
      if (row === undefined) throw noCluster(id);
      if (row.is_default === 1) {
        throw new LacewingError(
          "conflict",
          `Cannot delete cluster ${id}: it is the default (and may be the last); make another one the default first`,
        );
      }
      const pending = await tx.selectFrom("jobs").select(["id", "clusters"]).where("state", "=", "PENDING").execute();
      const needing = pending.find(({ clusters }) =>
        (JSON.parse(clusters) as { id: number }[]).some((cluster) => cluster.id === id)
      );
      if (needing !== undefined) {
        throw new LacewingError(
          "conflict",
          `Cannot delete cluster ${id}: job ${needing.id} is pending in it; wait for it or cancel it`,
        );
      }
      await tx.deleteFrom("scheduler_clusters").where("id", "=", id).execute();
    });
    await this.refresh();
  }
}

function fromRow(row: Selectable<SchedulerClustersTable>): Cluster {
  return {
    id: row.id,
    name: row.name,
    bio: row.bio,
    isDefault: row.is_default === 1,
    scopes: JSON.parse(row.scopes),
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
  };
}

function noCluster(id: number): LacewingError {
  return new LacewingError("not_found", `Cannot find scheduler cluster ${id}: there is none with this id`);
}
