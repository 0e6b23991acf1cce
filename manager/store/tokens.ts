/**
 * Personal access tokens: only their SHA-256 is kept. A token is random, so
 * that its digest may be looked up; the comparison that counts is done in
 * constant time by whoever asks.
 */
import type { Kysely, Selectable } from "kysely";
import { LacewingError } from "../../peer/core/errors.ts";
import type { PersonalAccessTokensTable, Tables } from "./schema.ts";

/** What a token allows; `admin` allows everything. */
export const TOKEN_SCOPES = ["job", "cluster", "admin", "peer"] as const;
export type TokenScope = typeof TOKEN_SCOPES[number];

export interface Token {
  readonly id: number;
  readonly name: string;
  readonly bio: string;
  readonly digest: string;
  readonly scopes: TokenScope[];
  /** Null: never. */
  readonly expiresAtMs: number | null;
  readonly lastUsedAtMs: number | null;
  readonly createdAtMs: number;
}

/** Between two records of a token's use, milliseconds: uses are frequent, writes are not free. */
const USE_RECORDED_EACH_MS = 60_000;

export class TokenStore {
  constructor(private readonly db: Kysely<Tables>, private readonly now: () => number) {}

  async list({ limit, offset = 0 }: { limit?: number; offset?: number } = {}): Promise<Token[]> {
    const query = this.db.selectFrom("personal_access_tokens").selectAll().orderBy("id");
    return (await (limit === undefined ? query : query.limit(limit).offset(offset)).execute()).map(fromRow);
  }

  async count(): Promise<number> {
    const row = await this.db.selectFrom("personal_access_tokens").select((eb) => eb.fn.countAll<number>().as("count"))
      .executeTakeFirstOrThrow();
    return Number(row.count);
  }

  /** @throws {LacewingError} `not_found` */
  async get(id: number): Promise<Token> {
    const row = await this.db.selectFrom("personal_access_tokens").selectAll().where("id", "=", id).executeTakeFirst();
    if (row === undefined) throw noToken(id);
    return fromRow(row);
  }

  /** The token with this digest, or null. */
  async find(digest: string): Promise<Token | null> {
    const row = await this.db.selectFrom("personal_access_tokens").selectAll().where("digest", "=", digest)
      .executeTakeFirst();
    return row === undefined ? null : fromRow(row);
  }

  /** @throws {LacewingError} `conflict` when the name is taken. */
  async create(token: Pick<Token, "name" | "bio" | "digest" | "scopes" | "expiresAtMs">): Promise<Token> {
    const row = await this.db.insertInto("personal_access_tokens").values({
      name: token.name,
      bio: token.bio,
      digest: token.digest,
      scopes: JSON.stringify(token.scopes),
      expires_at_ms: token.expiresAtMs,
      last_used_at_ms: null,
      created_at_ms: this.now(),
    }).returningAll().executeTakeFirstOrThrow();
    return fromRow(row);
  }

  async used(token: Token): Promise<void> {
    const now = this.now();
    if (token.lastUsedAtMs !== null && now - token.lastUsedAtMs < USE_RECORDED_EACH_MS) return;
    await this.db.updateTable("personal_access_tokens").set({ last_used_at_ms: now }).where("id", "=", token.id)
      .execute();
  }

  /** @throws {LacewingError} `not_found` */
  async remove(id: number): Promise<void> {
    const { numDeletedRows } = await this.db.deleteFrom("personal_access_tokens").where("id", "=", id)
      .executeTakeFirst();
    if (numDeletedRows === 0n) throw noToken(id);
  }
}

function fromRow(row: Selectable<PersonalAccessTokensTable>): Token {
  return {
    id: row.id,
    name: row.name,
    bio: row.bio,
    digest: row.digest,
    scopes: JSON.parse(row.scopes),
    expiresAtMs: row.expires_at_ms,
    lastUsedAtMs: row.last_used_at_ms,
    createdAtMs: row.created_at_ms,
  };
}

function noToken(id: number): LacewingError {
  return new LacewingError("not_found", `Cannot find personal access token ${id}: there is none with this id`);
}
