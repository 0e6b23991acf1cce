/**
 * As much of the container runtime interface as the tests need: a kubelet's
 * PullImage over containerd's Unix socket. gRPC by hand: one
 * HTTP/2 request a call, five bytes before each message, the outcome in the
 * trailers. The few messages have strings and messages as their only fields.
 */
import http2 from "node:http2";
import net from "node:net";

/** AuthConfig of a pull; `serverAddress` is a URL, for whose host alone the rest is meant. */
export interface CriAuth {
  readonly username: string;
  readonly password: string;
  readonly serverAddress?: string;
}

/** Status of a call; code 0 is OK. */
export interface CriResult {
  readonly code: number;
  readonly message: string;
  /** `sha256:…` of the image's config; empty when the call failed. */
  readonly imageRef: string;
}

type Message = Readonly<Record<number, string | Uint8Array>>;

const IMAGE_SERVICE = "/runtime.v1.ImageService";

export class CriClient implements AsyncDisposable {
  readonly #session: http2.ClientHttp2Session;

  constructor(socket: string) {
    this.#session = http2.connect("http://localhost", { createConnection: () => net.connect(socket) });
    // Each call hears of it, too.
    this.#session.on("error", () => {});
  }

  pullImage(image: string, auth?: CriAuth): Promise<CriResult> {
    const spec = encodeMessage({ 1: image });
    if (auth === undefined) return this.#call("PullImage", { 1: spec });
    const { username, password, serverAddress = "" } = auth;
    return this.#call("PullImage", { 1: spec, 2: encodeMessage({ 1: username, 2: password, 4: serverAddress }) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise<void>((resolve) => this.#session.close(resolve));
  }

  #call(method: string, message: Message): Promise<CriResult> {
    const request = this.#session.request({
      ":method": "POST",
      ":path": `${IMAGE_SERVICE}/${method}`,
      "content-type": "application/grpc",
      "te": "trailers",
    });
    const parts: Uint8Array[] = [];
    let [code, text] = [-1, "no status came"];
    const note = (headers: http2.IncomingHttpHeaders) => {
      if (headers["grpc-status"] === undefined) return;
      [code, text] = [Number(headers["grpc-status"]), decodeURIComponent(String(headers["grpc-message"] ?? ""))];
    };
    const { promise, resolve, reject } = Promise.withResolvers<CriResult>();
    // An answer without a message has its status among the headers.
    request.on("response", note).on("trailers", note).on("error", reject);
    request.on("data", (part: Uint8Array) => parts.push(part));
    request.on("end", () => resolve({ code, message: text, imageRef: onlyText(joined(parts).subarray(5)) }));
    request.end(framed(encodeMessage(message)));
    return promise;
  }
}

/** Fields of strings, or of messages that are encoded already; empty ones are left out. */
function encodeMessage(message: Message): Uint8Array {
  const parts = Object.entries(message).flatMap(([number, value]) => {
    const bytes = typeof value === "string" ? new TextEncoder().encode(value) : value;
    // Wire type 2: bytes with their length.
    return bytes.length === 0 ? [] : [Uint8Array.of(Number(number) << 3 | 2), varint(bytes.length), bytes];
  });
  return joined(parts);
}

/** The string of field 1 that an answer of one short field holds. */
function onlyText(message: Uint8Array): string {
  const [key, length = 0] = message;
  if (key !== (1 << 3 | 2) || length > 127) return "";
  return new TextDecoder().decode(message.subarray(2, 2 + length));
}

function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push(value % 128 | 128);
  return Uint8Array.from([...bytes, value]);
}

function framed(message: Uint8Array): Uint8Array {
  const frame = new Uint8Array(5 + message.length);
  new DataView(frame.buffer).setUint32(1, message.length);
  frame.set(message, 5);
  return frame;
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const result = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    result.set(part, at);
    at += part.length;
  }
  return result;
}
