/**
 * What neighbours say to each other on the upload port: piece bytes over HTTP
 * with keep-alive (`GET /v1/tasks/TASK/GENERATION/pieces/NUMBER`), and one
 * long-lived exchange of JSON lines per pair (`GET /v1/exchange` with
 * `Upgrade: lacewing-exchange/1`) in which the dialling side subscribes to
 * tasks and hears which pieces the other has.
 */
import { z } from "zod";
import { generationText as generation, taskIdText, wireError } from "./scheduler.ts";

export const EXCHANGE_UPGRADE = "lacewing-exchange/1";
export const EXCHANGE_PATH = "/v1/exchange";
/** Who asks: the host id of the child. */
export const HOST_HEADER = "x-lacewing-host";
/** Pieces that the child still misses: the neediest is served first. */
export const NEED_HEADER = "x-lacewing-need";
/** `1`: the child brings the piece over for all of its idc, and is served before others. */
export const CROSSING_HEADER = "x-lacewing-crossing";
/**
 * The child says with an empty line (RFC 9112, 2.2 allows one before a request) that it has the whole piece. Without it
 * a sender knows only that its kernel took the bytes: of a piece of 256 KiB all of them, at once.
 */
export const ACK_HEADER = "x-lacewing-ack";
/** The span that asks, where the child takes part in a trace (W3C Trace Context). */
export const TRACE_HEADER = "traceparent";

const pieceNumbers = z.array(z.number().int().nonnegative()).max(4096);

/** Dialling side → serving side. */
export const exchangeRequest = z.discriminatedUnion("type", [
  z.object({ type: z.literal("subscribe"), task_id: taskIdText, generation }),
  z.object({ type: z.literal("unsubscribe"), task_id: taskIdText }),
]);

/** Serving side → dialling side. */
export const exchangeEvent = z.discriminatedUnion("type", [
  /** All pieces held now; answers every subscribe (an unknown task has none and is `known: false`). */
  z.object({
    type: z.literal("bitmap"),
    task_id: taskIdText,
    generation,
    known: z.boolean(),
    pieces: z.string().max(64 * 1024),
  }),
  z.object({ type: z.literal("have"), task_id: taskIdText, generation, pieces: pieceNumbers }),
  /** The task was dropped or replaced by another generation. */
  z.object({ type: z.literal("gone"), task_id: taskIdText, generation }),
  /** Why the serving side ends the connection. */
  z.object({ type: z.literal("error"), error: wireError }),
]);

export type ExchangeRequest = z.output<typeof exchangeRequest>;
export type ExchangeEvent = z.output<typeof exchangeEvent>;

/** Path of one piece; a generation's name needs no escaping. */
export function piecePath(taskId: string, generation: string, number: number): string {
  return `/v1/tasks/${taskId}/${generation}/pieces/${number}`;
}

/** Reads a path made by `piecePath`; null for any other path. */
export function parsePiecePath(path: string): { taskId: string; generation: string; number: number } | null {
  const match = /^\/v1\/tasks\/([0-9a-f]{64})\/([A-Za-z0-9][A-Za-z0-9._~-]{0,63})\/pieces\/(\d{1,7})$/.exec(path);
  if (match === null) return null;
  const [, taskId = "", generation = "", number = ""] = match;
  return { taskId, generation, number: Number(number) };
}
