/**
 * The engine's door: everything that wants a content (client, order of the
 * scheduler, proxy) calls `TaskManager.start` with a request and gets a run.
 */
import type { Digest } from "../core/digest.ts";
import type { RangeSpec } from "../core/range.ts";
import type { DownloadStats } from "../core/wire/ipc.ts";
import type { SourceVersion } from "../source/source.ts";

/** What is asked for. */
export interface TaskRequest {
  readonly url: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly tag: string;
  readonly filter: string;
  /** Whole content's digest, checked before `finished` resolves. */
  readonly digest: Digest | null;
  /** Part wanted; null is all. */
  readonly range: RangeSpec | null;
  /** Whether the bytes will be read in order while they come: the first ones are needed first. Default: the file is wanted. */
  readonly inOrder?: boolean;
  readonly disableBackSource: boolean;
  /** Bytes per second; 0 is no limit. */
  readonly rateLimitBytesPerSecond: number;
  readonly traceparent?: string;
}

/** How far a run is. All counts are bytes of the part asked for. */
export interface TaskProgress {
  /** Null while the length is not known. */
  readonly total: number | null;
  readonly done: number;
  readonly fromLocal: number;
  readonly fromPeers: number;
  readonly fromSource: number;
  /** Hosts that have sent at least one piece. */
  readonly peers: number;
}

/** One request's part in a task. Dispose it when its bytes are no longer needed: its file stays until then. */
export interface TaskRun extends AsyncDisposable {
  readonly taskId: string;
  progress(): TaskProgress;
  /** Calls `listener` after each change, at most once per event-loop turn; returns the way to stop. */
  onProgress(listener: () => void): () => void;
  /** Resolves when every byte asked for is valid (and the digest right); rejects with a LacewingError or `signal.reason`. */
  readonly finished: Promise<TaskResult>;
  /** The bytes asked for, in order, while they become valid; waits for each. */
  read(): AsyncIterable<Uint8Array>;
}

export interface Opened {
  readonly contentLength: number;
  readonly version?: SourceVersion;
}

/** A run whose bytes can be read from any place on, with the content's length known before: what a proxy answers from. */
export interface StreamingRun extends TaskRun {
  /**
   * Resolves as soon as the whole content's length is known, whatever part is asked for; rejects as `finished` does.
   * The version is what further reads of the origin must find, where it marks one.
   */
  readonly opened: Promise<Opened>;
  /**
   * As `TaskRun.read`.
   *
   * @param from bytes of the part asked for to pass over
   * @param reuse whether a chunk is valid only until the next one is asked for: saves 0.19 CPU s/GB of copying
   */
  read(options?: { from?: number; reuse?: boolean }): AsyncIterable<Uint8Array>;
}

export interface StreamingStarter {
  /** @throws {LacewingError} `usage` for a URL that cannot be read. */
  start(request: TaskRequest, options: { signal: AbortSignal }): StreamingRun;
}

export interface TaskResult {
  readonly stats: DownloadStats;
  /** Absolute path of the whole content's file in the store. */
  readonly path: string;
}

export interface TaskStarter {
  /** @throws {LacewingError} `usage` for a URL that cannot be read. */
  start(request: TaskRequest, options: { signal: AbortSignal }): TaskRun;
}
