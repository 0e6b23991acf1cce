/**
 * One host's WebSocket: reads and checks its messages, bounds what waits to be
 * sent, and ends exactly once, whoever ends it. What the messages mean is
 * decided elsewhere.
 */
import { LacewingError, toWireError } from "../../peer/core/errors.ts";
import {
  decodeMessage,
  type HostMessage,
  hostMessage,
  MESSAGE_LENGTH_MAX,
  type WireError,
} from "../../peer/core/wire/scheduler.ts";
import type { HostLink } from "./cluster.ts";

/** Bytes waiting to be sent; a host that lets more pile up does not read. */
export const BUFFERED_MAX = 16 * 1024 * 1024;
/** Bytes of a close reason, RFC 6455 section 5.5. */
const REASON_LENGTH_MAX = 120;

export interface ConnectionEvents {
  /** The socket is open: from now on it has to say hello. */
  onOpen(): void;
  /** @throws {LacewingError} what is told to the host before the connection ends */
  onMessage(message: HostMessage): void;
  /** Once, whoever ended it. */
  onEnd(reason: string): void;
  /** A message could not be handled for a reason of our own. */
  onFault(error: unknown): void;
}

export class HostConnection implements HostLink {
  /** Resolves when the socket is closed. */
  readonly closed: Promise<void>;
  #isEnded = false;

  constructor(private readonly socket: WebSocket, private readonly events: ConnectionEvents) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    socket.onopen = () => this.#isEnded ? socket.close() : events.onOpen();
    socket.onmessage = ({ data }) => this.#receive(data);
    socket.onerror = () => this.#end("connection error");
    socket.onclose = () => {
      this.#end("connection closed");
      resolve();
    };
  }

  send(text: string): void {
    if (this.#isEnded || this.socket.readyState !== WebSocket.OPEN) return;
    if (this.socket.bufferedAmount + text.length > BUFFERED_MAX) {
      return this.close({ code: "unavailable", message: "This host does not read what is sent to it" }, 1013);
    }
    this.socket.send(text);
  }

  close(error: WireError, code = 1008): void {
    if (this.#isEnded) return;
    this.#end(error.message);
    const isOpen = this.socket.readyState === WebSocket.OPEN;
    if (isOpen && this.socket.bufferedAmount < BUFFERED_MAX) this.socket.send(JSON.stringify({ type: "error", error }));
    this.#closeSocket(code, error.code);
  }

  /** Ends it because the service stops. */
  shutDown(): void {
    this.#end("the scheduler stops");
    this.#closeSocket(1001, "the scheduler stops");
  }

  #receive(data: unknown): void {
    if (this.#isEnded) return;
    try {
      this.events.onMessage(decodeMessage(hostMessage, data));
    } catch (error) {
      const isLong = typeof data === "string" && data.length > MESSAGE_LENGTH_MAX;
      if (!(error instanceof LacewingError)) this.events.onFault(error);
      this.close(toWireError(error), isLong ? 1009 : 1008);
    }
  }

  #end(reason: string): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.events.onEnd(reason);
  }

  #closeSocket(code: number, reason: string): void {
    // A socket that is still connecting is closed as soon as it is open.
    if (this.socket.readyState === WebSocket.OPEN) this.socket.close(code, reason.slice(0, REASON_LENGTH_MAX));
  }
}
