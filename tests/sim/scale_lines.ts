/** What `scale.ts` measures, and its lines for people. */

export const EVENTS_PER_SECOND_TARGET = 20_000;
export const BYTES_PER_MEMBER_TARGET = 2_048;

/** A wave through the state machine alone. */
export interface PureResult {
  readonly members: number;
  readonly events: number;
  /** Of CPU time. */
  readonly eventsPerSecond: number;
  readonly sent: number;
  readonly bytesPerMember: number;
}

/** A wave of real WebSockets. Times of CPU are the scheduler's process alone; messages and bytes are those to each member. */
export interface SocketsResult {
  readonly members: number;
  readonly joinMs: number;
  readonly joinCpuMs: number;
  readonly rssBytesPerMember: number;
  readonly pieces: number;
  readonly knownMs: number;
  readonly knownCpuMs: number;
  readonly messages: number;
  readonly bytes: number;
  readonly rssBytes: number;
}

export interface ScaleResult {
  readonly pure: readonly PureResult[];
  readonly sockets: SocketsResult;
}

export function scaleLines({ pure, sockets }: ScaleResult): string {
  const { members, pieces, messages } = sockets;
  return [
    ...pure.map((it) =>
      `pure: ${it.members} members: ${it.events} events, ${Math.round(it.eventsPerSecond)} a second of CPU ` +
      `(target ${EVENTS_PER_SECOND_TARGET}), ${it.sent} messages sent, ${Math.round(it.bytesPerMember)} bytes ` +
      `a member (target ${BYTES_PER_MEMBER_TARGET})`
    ),
    `sockets: ${members} members joined in ${Math.round(sockets.joinMs)} ms (${Math.round(sockets.joinCpuMs)} ms of ` +
    `the scheduler's CPU), ${
      Math.round(sockets.rssBytesPerMember / 1024)
    } KiB of RSS each; ${pieces} pieces known to ` +
    `all after ${Math.round(sockets.knownMs)} ms (${Math.round(sockets.knownCpuMs)} ms CPU, ${messages.toFixed(1)} ` +
    `messages and ${(sockets.bytes / 1024).toFixed(1)} KiB to each); RSS ${Math.round(sockets.rssBytes / 2 ** 20)} MiB`,
  ].join("\n");
}
