/**
 * Stands in for `@std/streams/to-text` where JSR is out of reach. Invalid
 * UTF-8 becomes U+FFFD, as with `Response.text()`.
 */

/** The whole of a stream of strings or UTF-8 bytes as one string. */
export async function toText(stream: ReadableStream<string> | ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream as ReadableStream<string | Uint8Array>) {
    text += typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
