/**
 * Reads what a daemon says to its client, by the rules of `ipcReply` in
 * `ipc.ts`, written out: loading zod and building its schemas takes 27 ms of a
 * client's 60 (Deno 2.9.6), for five small messages. A test holds both to the
 * same verdict over every field.
 */
import type { IpcReply } from "./ipc.ts";

/** Version in every request; another one is refused with `protocol`. */
export const IPC_PROTOCOL = 1;

/** Gives the value as it counts, or throws `Unfit`. */
type Read = (value: unknown, path: string) => unknown;
type Shape = Readonly<Record<string, Read>>;

/** Where a message is not what it should be. */
class Unfit extends Error {
  constructor(readonly path: string) {
    super(path);
  }
}

const test = (isFit: (value: unknown) => boolean): Read => (value, path) => {
  if (!isFit(value)) throw new Unfit(path);
  return value;
};
const count = test((value) => Number.isSafeInteger(value) && (value as number) >= 0);
const text = (lengthMax: number) => test((value) => typeof value === "string" && value.length <= lengthMax);
const nullable = (read: Read): Read => (value, path) => value === null ? null : read(value, path);
const flag = test((value) => typeof value === "boolean");
const optional = (read: Read): Read => (value, path) => value === undefined ? undefined : read(value, path);
const object = (shape: Shape): Read => (value, path) => pick(shape, value, path);

const hostBytes: Read = (value, path) => {
  if (!Array.isArray(value) || value.length !== 2) throw new Unfit(path);
  return [text(256)(value[0], path), count(value[1], path)];
};
const list = (read: Read, lengthMax: number, lengthMin = 0): Read => (value, path) => {
  if (!Array.isArray(value) || value.length > lengthMax || value.length < lengthMin) throw new Unfit(path);
  return value.map((item) => read(item, path));
};
const parents: Read = (value, path) => value === undefined ? [] : list(hostBytes, 1000)(value, path);

const stats: Shape = {
  task_id: text(64),
  content_length: count,
  offset: count,
  length: count,
  from_local: count,
  from_peers: count,
  from_source: count,
  peers: count,
  verified: nullable(text(140)),
  parents,
  last_modified: optional(text(128)),
};

const WAYS = ["request", "containerd", "mirror", "proxy"];

const proxy: Shape = {
  address: text(80),
  url: text(4096),
  dynamic: flag,
  registries: list(text(256), 1000),
  password: flag,
};

const wireError: Shape = { code: text(64), message: text(4000) };

const explainedTask: Shape = {
  ways: list(test((value) => typeof value === "string" && WAYS.includes(value)), 4, 1),
  task_id: text(64),
  url: text(16_384),
  filter: text(1024),
  tag: text(256),
  shared: flag,
  held: nullable(object({
    complete: flag,
    content_length: count,
    piece_count: count,
    pieces: count,
    verified: nullable(text(140)),
  })),
  host_count: count,
  hosts: list(object({ host_id: text(64), hostname: text(256), complete: flag, piece_count: count }), 100),
  jobs: list(
    object({ job_id: count, cluster_id: count, job_state: text(16), state: text(16), host_count: count }),
    100,
  ),
};

const SHAPES: Readonly<Record<IpcReply["type"], Shape>> = {
  accepted: { task_id: text(64), data_dir: optional(text(4096)) },
  progress: {
    total: nullable(count),
    done: count,
    from_local: count,
    from_peers: count,
    from_source: count,
    peers: count,
  },
  data: { length: count },
  done: { path: nullable(text(4096)), stats: object(stats) },
  status: {
    version: text(64),
    host_id: text(64),
    tasks: count,
    schedulers: count,
    pid: count,
    proxy: optional(nullable(object(proxy))),
  },
  explained: {
    host_id: text(64),
    proxy: nullable(object({ filter: text(1024), tag: text(256) })),
    cluster_error: nullable(object(wireError)),
    tasks: list(object(explainedTask), 4, 1),
  },
  error: { error: object(wireError) },
};

/** @returns the message without fields that are not known, or the path of what is wrong in it */
export function readIpcReply(value: unknown): { readonly reply: IpcReply } | { readonly wrong: string } {
  const type = (value as { type?: unknown } | null)?.type;
  if (typeof type !== "string" || !Object.hasOwn(SHAPES, type)) return { wrong: "type" };
  try {
    const fields = pick(SHAPES[type as IpcReply["type"]], value, "");
    return { reply: { type, ...fields } as IpcReply };
  } catch (error) {
    if (error instanceof Unfit) return { wrong: error.path };
    throw error;
  }
}

function pick(shape: Shape, value: unknown, path: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Unfit(path);
  const picked: Record<string, unknown> = {};
  for (const [name, read] of Object.entries(shape)) {
    const field = read((value as Record<string, unknown>)[name], path === "" ? name : `${path}.${name}`);
    if (field !== undefined) picked[name] = field;
  }
  return picked;
}
