/**
 * What a host and a scheduler say to each other over one WebSocket: JSON text
 * messages, validated at both ends, each at most `MESSAGE_LENGTH_MAX` long.
 * The host opens the connection (works behind NAT) and begins with `hello`.
 * A scheduler keeps nothing on disk: all it knows comes from these messages.
 */
import { z } from "zod";
import { LacewingError } from "../errors.ts";
import { PIECE_COUNT_MAX, pieceCount } from "../piece.ts";

/** Version in `hello` and `welcome`; another one is refused. */
export const SCHEDULER_PROTOCOL = 1;
/** Characters of one message; longer ones end the connection. */
export const MESSAGE_LENGTH_MAX = 1024 * 1024;
/** Entries of one message's list; longer lists are sent in several messages. */
export const BATCH_MAX = 1000;
/** Characters of a wrong message's path, and of what is wrong there, that an error repeats. */
const REASON_LENGTH_MAX = 200;
/** Characters of one batch's list; the rest of its message needs far less than the other half. */
const BATCH_LENGTH_MAX = MESSAGE_LENGTH_MAX / 2;
/** Path of the WebSocket on the manager. */
export const SCHEDULER_PATH = "/api/v1/scheduler/connect";

const id = z.string().min(1).max(64);
const count = z.number().int().nonnegative();
const hex = z.string().regex(/^[0-9a-f]{64}$/);
const url = z.string().min(1).max(8192);
/** A failure as it travels: a code of `errors.ts` (or a later one) and a sentence. */
export const wireError = z.object({ code: z.string().max(64), message: z.string().max(4000) });

/** Task id: 64 hex digits. */
export const taskIdText = hex;

/** Name of a generation: what stands in a path as it is, and is neither `.` nor `..`. */
export const generationText = z.string().regex(
  /^[A-Za-z0-9][A-Za-z0-9._~-]{0,63}$/,
  "want 1 to 64 of A-Z a-z 0-9 . _ ~ -",
);

/** What names a task, and what its origin needs to be asked. */
export const taskSpec = z.object({
  task_id: hex,
  url,
  tag: z.string().max(256).default(""),
  filter: z.string().max(1024).default(""),
  /** `algorithm:hex` of the whole content where it is known. */
  digest: z.string().max(140).optional(),
});

/** One version of a content: how long it is, how it is cut, how the origin marks it. */
export const taskMeta = z.object({
  /** Names this version; pieces of two generations never mix. */
  generation: generationText,
  content_length: count,
  piece_length: z.number().int().positive(),
  /** Whether the origin serves ranges; if not, one host reads it as a stream. */
  ranges: z.boolean(),
  etag: z.string().max(512).optional(),
  last_modified: z.string().max(128).optional(),
}).refine(
  (meta) => pieceCount({ contentLength: meta.content_length, pieceLength: meta.piece_length }) <= PIECE_COUNT_MAX,
  `want at most ${PIECE_COUNT_MAX} pieces`,
);

/** Piece number and its SHA-256 in hex. */
export const pieceDigest = z.tuple([count, hex]);

export const hostFacts = z.object({
  id,
  hostname: z.string().max(256),
  ip: z.string().max(64),
  /** Where this host serves pieces. */
  upload_port: z.number().int().min(1).max(65535),
  type: z.enum(["normal", "seed"]),
  idc: z.string().max(128).default(""),
  location: z.string().max(256).default(""),
  /** `linux/amd64` as OCI writes it. */
  platform: z.string().max(64),
  version: z.string().max(64),
  /** Cluster that a seed peer is configured for; ordinary hosts are placed by the manager. */
  cluster_id: z.number().int().positive().optional(),
});

export const heldTask = taskSpec.extend({
  meta: taskMeta,
  piece_count: count,
  complete: z.boolean(),
  last_used_at: z.string().max(40).optional(),
});

/** Tasks asked for at once. */
export const FIND_MAX = 16;
/** Hosts of a task, and jobs, that an answer names at most. */
export const FOUND_MAX = 100;

/** Who has a task in this host's cluster. */
export const foundTask = z.object({
  task_id: hex,
  content_length: count.nullable(),
  piece_length: count.nullable(),
  /** All of them; `hosts` names the first. */
  host_count: count,
  hosts: z.array(z.object({
    host_id: id,
    hostname: z.string().max(256),
    complete: z.boolean(),
    piece_count: count,
  })).max(FOUND_MAX),
});

/** A task's part of a job, newest job first. */
export const foundJob = z.object({
  task_id: hex,
  job_id: count,
  cluster_id: count,
  /** Of the job: PENDING, SUCCESS, FAILURE or CANCELED. */
  job_state: z.string().max(16),
  /** Of this task in it. */
  state: z.string().max(16),
  /** Hosts that have it by that job. */
  host_count: count,
});

const orderState = z.enum(["running", "success", "failure"]);

/** Host → scheduler. */
export const hostMessage = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("hello"),
    v: z.literal(SCHEDULER_PROTOCOL),
    host: hostFacts,
    join_token: z.string().max(4096).optional(),
  }),
  /** Tasks on this host's disk, after hello and when one completes. */
  z.object({ type: z.literal("held"), tasks: z.array(heldTask).max(BATCH_MAX) }),
  /** Tasks no longer on this host's disk. */
  z.object({ type: z.literal("dropped"), task_ids: z.array(hex).max(BATCH_MAX) }),
  z.object({ type: z.literal("heartbeat"), uploads: count, downloads: count, free_bytes: count }),
  z.object({
    type: z.literal("join"),
    task: taskSpec,
    /** What this host has on disk of the task, if anything. */
    meta: taskMeta.optional(),
    piece_count: count.default(0),
    /** Whether this host may read the origin for this task. */
    can_source: z.boolean(),
    /** Whether the origin is asked without this host's own headers, so that any host may read it instead. */
    anonymous: z.boolean(),
    /** Only part of the content is wanted: lease nothing unasked; missing pieces come as `starving`. */
    partial: z.boolean().default(false),
    /** W3C traceparent of what this host joins for. */
    traceparent: z.string().max(100).optional(),
  }),
  z.object({ type: z.literal("leave"), task_id: hex }),
  /** A lease holder learned what the origin has. */
  z.object({ type: z.literal("meta"), task_id: hex, meta: taskMeta }),
  /** Pieces read from the origin (or found on disk after `want_digests`). */
  z.object({
    type: z.literal("pieces"),
    task_id: hex,
    generation: generationText,
    pieces: z.array(pieceDigest).max(BATCH_MAX),
  }),
  z.object({ type: z.literal("lease_end"), task_id: hex, lease_id: count, error: wireError.optional() }),
  /** No neighbour offers these pieces and nothing else is under way. */
  z.object({
    type: z.literal("starving"),
    task_id: hex,
    generation: generationText,
    pieces: z.array(count).max(BATCH_MAX),
  }),
  z.object({ type: z.literal("bad_peer"), task_id: hex, host_id: id, piece: count }),
  /** The origin was asked whether it still has this generation. */
  z.object({ type: z.literal("checked"), task_id: hex, generation: generationText, changed: z.boolean() }),
  z.object({ type: z.literal("complete"), task_id: hex, generation: generationText }),
  /** Somebody wants to know who has these tasks, and which jobs they belong to. */
  z.object({ type: z.literal("find"), find_id: count, task_ids: z.array(hex).min(1).max(FIND_MAX) }),
  z.object({
    type: z.literal("order_progress"),
    order_id: id,
    state: orderState,
    content_length: count.nullable(),
    done: count,
    from_source: count,
    from_peers: count,
    error: wireError.optional(),
  }),
]);

/** A host as its neighbours see it. */
export const neighbour = z.object({
  host_id: id,
  /** `IP:PORT` of its upload server. */
  address: z.string().max(80),
  type: z.enum(["normal", "seed"]),
  idc: z.string().max(128),
});

/**
 * Hosts of the receiver's idc that bring pieces over from other idcs; null where
 * all of it do. Absent in `task`: null; in `neighbours`: as before.
 */
const carriers = z.array(id).max(BATCH_MAX).nullable().optional();

export const orderTask = taskSpec.extend({ headers: z.record(z.string().max(256), z.string().max(8192)) });

/** Scheduler → host. */
export const schedulerMessage = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("welcome"),
    v: z.literal(SCHEDULER_PROTOCOL),
    cluster_id: z.number().int().positive(),
    heartbeat_ms: z.number().int().positive(),
  }),
  /** Answer to join: what is known of the task. Digests follow in `digests`. */
  z.object({
    type: z.literal("task"),
    task_id: hex,
    meta: taskMeta.nullable(),
    neighbours: z.array(neighbour).max(BATCH_MAX),
    carriers,
    /** Nobody has asked the origin for a while whether it still has this generation: ask, and answer `checked`. */
    confirm: z.boolean().optional(),
  }),
  /** The layout became known, or a new generation replaces the old one. */
  z.object({ type: z.literal("meta"), task_id: hex, meta: taskMeta }),
  z.object({
    type: z.literal("neighbours"),
    task_id: hex,
    add: z.array(neighbour).max(BATCH_MAX),
    remove: z.array(id).max(BATCH_MAX),
    carriers,
  }),
  z.object({
    type: z.literal("digests"),
    task_id: hex,
    generation: generationText,
    pieces: z.array(pieceDigest).max(BATCH_MAX),
  }),
  /**
   * Leave to read `count` pieces from `first` on from the origin. Without a
   * generation the layout is unknown: ask for the beginning and send `meta`.
   */
  z.object({
    type: z.literal("lease"),
    task_id: hex,
    lease_id: count,
    generation: generationText.nullable(),
    first: count,
    count,
  }),
  z.object({ type: z.literal("revoke"), task_id: hex, lease_id: count }),
  /** The list of piece digests is lost (restart): send what you hold. */
  z.object({ type: z.literal("want_digests"), task_id: hex, generation: generationText }),
  z.object({ type: z.literal("order"), order_id: id, kind: z.enum(["preheat", "drop"]), task: orderTask }),
  z.object({ type: z.literal("cancel_order"), order_id: id }),
  z.object({
    type: z.literal("found"),
    find_id: count,
    tasks: z.array(foundTask).max(FIND_MAX),
    jobs: z.array(foundJob).max(FOUND_MAX),
  }),
  /** Nobody can read the origin for this task: the reason. */
  z.object({ type: z.literal("failed"), task_id: hex, error: wireError }),
  z.object({ type: z.literal("error"), error: wireError }),
]);

export type TaskSpec = z.output<typeof taskSpec>;
export type TaskMeta = z.output<typeof taskMeta>;
export type PieceDigest = z.output<typeof pieceDigest>;
export type HostFacts = z.output<typeof hostFacts>;
export type HeldTask = z.output<typeof heldTask>;
export type Neighbour = z.output<typeof neighbour>;
export type OrderTask = z.output<typeof orderTask>;
export type HostMessage = z.output<typeof hostMessage>;
export type SchedulerMessage = z.output<typeof schedulerMessage>;
export type FoundTask = z.output<typeof foundTask>;
export type FoundJob = z.output<typeof foundJob>;
export type WireError = z.output<typeof wireError>;

/**
 * Reads one message.
 *
 * @throws {LacewingError} `protocol` if it is too long, no JSON, or not of the schema.
 */
export function decodeMessage<Schema extends z.ZodType>(schema: Schema, text: unknown): z.output<Schema> {
  if (typeof text !== "string") throw new LacewingError("protocol", "Cannot read message: want text, not binary");
  if (text.length > MESSAGE_LENGTH_MAX) {
    throw new LacewingError(
      "protocol",
      `Cannot read message: it has ${text.length} characters, at most ${MESSAGE_LENGTH_MAX} are allowed`,
    );
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new LacewingError("protocol", "Cannot read message: not JSON", { cause });
  }
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const path = issue?.path.join(".").slice(0, REASON_LENGTH_MAX) || "(top)";
  const reason = issue?.message.slice(0, REASON_LENGTH_MAX);
  throw new LacewingError("protocol", `Cannot read message: ${path}: ${reason}`);
}

/**
 * Cuts a list into the batches that fit one message each, by count and by the
 * length of their JSON (1,000 tasks with signed URLs are longer than a message); an empty list gives none.
 *
 * @throws {RangeError} if a batch would hold nothing.
 */
export function batches<T>(items: readonly T[], size = BATCH_MAX): T[][] {
  if (!(size >= 1)) throw new RangeError(`Cannot cut batches of ${size}`);
  const result: T[][] = [];
  let batch: T[] = [];
  let length = 0;
  for (const item of items) {
    const itemLength = JSON.stringify(item).length + 1;
    if (batch.length >= size || (batch.length > 0 && length + itemLength > BATCH_LENGTH_MAX)) {
      result.push(batch);
      [batch, length] = [[], 0];
    }
    batch.push(item);
    length += itemLength;
  }
  return batch.length === 0 ? result : [...result, batch];
}
