/**
 * The ports between the task engine and the hosts around: asking a neighbour
 * for a piece, and hearing which pieces neighbours have.
 */
import type { Bitmap } from "../core/bitmap.ts";

/** A piece to ask a neighbour for. */
export interface PieceRequest {
  /** `IP:PORT` of the neighbour's upload server. */
  readonly address: string;
  readonly taskId: string;
  readonly generation: string;
  readonly number: number;
  /** Bytes of the piece; an answer of any other length is an error. */
  readonly length: number;
  /** Pieces that this host still misses. */
  readonly missing: number;
  /** Whether it is brought over for all of this host's idc. */
  readonly crosses?: boolean;
  /** Sent along, so that the neighbour's part belongs to the trace. */
  readonly traceparent?: string | undefined;
}

/** Takes the bytes of a piece as they arrive; the view is valid until the promise resolves. */
export type PieceSink = (bytes: Uint8Array) => Promise<void> | void;

export interface PieceClient extends AsyncDisposable {
  /**
   * Fetches one piece over a kept-alive connection, straight into `sink`.
   *
   * @throws {LacewingError} `peer_failed` when the neighbour is gone, refuses, stalls (no byte for 5 s) or sends another length;
   * `unavailable` when it has no free slot or does not hold the piece now.
   */
  fetch(request: PieceRequest, sink: PieceSink, options: { signal: AbortSignal }): Promise<void>;
}

/** What a neighbour tells of one task. */
export interface OfferListener {
  /** Everything the neighbour holds now (null: it does not know the task or has another generation). */
  onBitmap(hostId: string, pieces: Bitmap | null): void;
  onHave(hostId: string, pieces: readonly number[]): void;
  /** The link is gone; it is dialled again as long as the subscription stands. */
  onLost(hostId: string): void;
}

export interface Exchange extends AsyncDisposable {
  /**
   * Hears what one neighbour has of a task, until the returned function is called. Many tasks share one link per neighbour.
   */
  subscribe(
    neighbour: { hostId: string; address: string },
    task: { taskId: string; generation: string; pieceCount: number },
    listener: OfferListener,
  ): () => void;
}

/** What the upload server needs of the daemon: pieces held, and word of new ones. */
export interface PieceProvider {
  /**
   * The pieces of a task that this host may serve, or null when it has not this generation. The holding stays open until disposed.
   */
  hold(taskId: string, generation: string): Promise<Holding | null>;
}

export interface Holding extends AsyncDisposable {
  readonly pieces: Bitmap;
  readonly contentLength: number;
  readonly pieceLength: number;
  /** @returns bytes read */
  read(buffer: Uint8Array, offset: number): Promise<number>;
  /** Calls `listener` with each piece that becomes valid from now on, and with null when the task is dropped; returns the way to stop. */
  watch(listener: (piece: number | null) => void): () => void;
  /** Whether a host has told that it holds the piece itself. Default: unknown. */
  isKnownTo?(hostId: string, piece: number): boolean;
  /** Bytes of a piece of this task were sent to a host. */
  served?(hostId: string, bytes: number): void;
}
