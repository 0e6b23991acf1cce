/**
 * What a client and its daemon say over the Unix socket: JSON lines, one
 * request a connection; closing the connection cancels the request. After
 * `done` the client takes the file itself (hard link, copy), with its own
 * rights, or asks for the bytes with `send`.
 */
import { z } from "zod";
import { IPC_PROTOCOL } from "./ipc_reply.ts";
import { wireError } from "./scheduler.ts";

const count = z.number().int().nonnegative();

export const downloadRequest = z.object({
  type: z.literal("download"),
  v: z.literal(IPC_PROTOCOL),
  url: z.string().min(1).max(8192),
  /** Sent to the origin of this URL only. */
  headers: z.array(z.tuple([z.string().min(1).max(256), z.string().max(8192)])).max(100).default([]),
  tag: z.string().max(256).default(""),
  filter: z.string().max(1024).default(""),
  /** `algorithm:hex` of the whole content. */
  digest: z.string().max(140).nullable().default(null),
  /** `0-9`, `150-`, `-50`; null is the whole content. */
  range: z.string().max(40).nullable().default(null),
  disable_back_source: z.boolean().default(false),
  /** Bytes per second; 0 is no limit. */
  rate_limit: count.default(0),
  /** `file`: the client takes the daemon's file at the end. `stream`: bytes in order while they arrive. */
  delivery: z.enum(["file", "stream"]).default("file"),
  /** W3C traceparent of the client's span. */
  traceparent: z.string().max(100).optional(),
});

/** Which task is this, who has it, and which one would the proxy make of it? */
export const explainRequest = downloadRequest.pick({ v: true, url: true, tag: true, filter: true }).extend({
  type: z.literal("explain"),
});

/** Client → daemon. */
export const ipcRequest = z.discriminatedUnion("type", [
  downloadRequest,
  z.object({ type: z.literal("status"), v: z.literal(IPC_PROTOCOL) }),
  explainRequest,
]);

/** Client → daemon after `done` of delivery `file`: the link and the copy failed. */
export const ipcFollowUp = z.object({ type: z.literal("send") });

/** Where a download's bytes came from, and how it ended. */
export const downloadStats = z.object({
  task_id: z.string().max(64),
  content_length: count,
  /** The bytes asked for: the range, or all. */
  offset: count,
  length: count,
  from_local: count,
  from_peers: count,
  from_source: count,
  /** Hosts that sent at least one piece. */
  peers: count,
  /** `algorithm:hex` that the whole content was checked against, or null. */
  verified: z.string().max(140).nullable(),
  /** Bytes by host that sent them: `[host name or id, bytes]`. */
  parents: z.array(z.tuple([z.string().max(256), count])).max(1000).default([]),
  /** How the origin dates the content, as its Last-Modified says it. */
  last_modified: z.string().max(128).optional(),
});

/** One task that a URL may be, and who has it. */
export const explainedTask = z.object({
  /** Who asks for it: `request` as the client gave it, `containerd` with `ns`, `mirror` podman, docker and their like, `proxy` by HTTP_PROXY. */
  ways: z.array(z.enum(["request", "containerd", "mirror", "proxy"])).min(1).max(4),
  task_id: z.string().max(64),
  /** As it is asked for, before the filter. */
  url: z.string().max(16_384),
  filter: z.string().max(1024),
  tag: z.string().max(256),
  /** Whether it goes through the swarm at all. */
  shared: z.boolean(),
  /** On this host's disk; null: nothing. */
  held: z.object({
    complete: z.boolean(),
    content_length: count,
    piece_count: count,
    pieces: count,
    verified: z.string().max(140).nullable(),
  }).nullable(),
  /** All hosts of the cluster that have something of it, this one among them; `hosts` names the first. */
  host_count: count,
  hosts: z.array(z.object({
    host_id: z.string().max(64),
    hostname: z.string().max(256),
    complete: z.boolean(),
    piece_count: count,
  })).max(100),
  jobs: z.array(z.object({
    job_id: count,
    cluster_id: count,
    job_state: z.string().max(16),
    state: z.string().max(16),
    host_count: count,
  })).max(100),
});

/** What the daemon's proxy is, for who sets up a runtime. */
export const proxyFacts = z.object({
  /** `HOST:PORT` that it listens on. */
  address: z.string().max(80),
  /** The registry of requests that name none. */
  url: z.string().max(4096),
  /** Whether a request may name another one. */
  dynamic: z.boolean(),
  /** Hosts of registries that are configured besides. */
  registries: z.array(z.string().max(256)).max(1000),
  /** Whether it wants a name and a password. */
  password: z.boolean(),
});

/** Daemon → client. A change here goes into `ipc_reply.ts`, too. */
export const ipcReply = z.discriminatedUnion("type", [
  /** `data_dir`: the folder that the daemon's files are in, for who wants to link them. */
  z.object({ type: z.literal("accepted"), task_id: z.string().max(64), data_dir: z.string().max(4096).optional() }),
  z.object({
    type: z.literal("progress"),
    total: count.nullable(),
    done: count,
    from_local: count,
    from_peers: count,
    from_source: count,
    peers: count,
  }),
  /** `length` raw bytes follow this line. */
  z.object({ type: z.literal("data"), length: count }),
  /** `path`: the daemon's file of the whole content (delivery `file`). It stays while the connection is open. */
  z.object({ type: z.literal("done"), path: z.string().max(4096).nullable(), stats: downloadStats }),
  z.object({
    type: z.literal("status"),
    version: z.string().max(64),
    host_id: z.string().max(64),
    tasks: count,
    schedulers: count,
    pid: count,
    /** Null: it is off. */
    proxy: proxyFacts.nullable().optional(),
  }),
  z.object({
    type: z.literal("explained"),
    host_id: z.string().max(64),
    /** Null: there is no proxy. */
    proxy: z.object({ filter: z.string().max(1024), tag: z.string().max(256) }).nullable(),
    /** Why the schedulers could not be asked; null: they were. */
    cluster_error: wireError.nullable(),
    tasks: z.array(explainedTask).min(1).max(4),
  }),
  z.object({ type: z.literal("error"), error: wireError }),
]);

export type DownloadRequest = z.output<typeof downloadRequest>;
export type DownloadRequestInput = z.input<typeof downloadRequest>;
export type ExplainRequest = z.output<typeof explainRequest>;
export type ExplainedTask = z.output<typeof explainedTask>;
export type Explained = Omit<Extract<z.output<typeof ipcReply>, { type: "explained" }>, "type">;
export type ProxyFacts = z.output<typeof proxyFacts>;
export type DownloadStats = z.output<typeof downloadStats>;
export type IpcRequest = z.output<typeof ipcRequest>;
export type IpcReply = z.output<typeof ipcReply>;
