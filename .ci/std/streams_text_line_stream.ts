/**
 * Stands in for `@std/streams/text-line-stream` where JSR is out of reach:
 * lines end by `\n` or `\r\n`, a last line without an end counts, empty lines
 * count. The option `allowCR` is left out, as nothing here uses it.
 *
 * Keeps: the cost is linear in the text, also when one line spans many chunks.
 */

/** Cuts a stream of text into lines without their line ends. */
export class TextLineStream extends TransformStream<string, string> {
  constructor() {
    let pending: string[] = [];
    super({
      transform(chunk, controller) {
        const parts = chunk.split("\n");
        if (parts.length > 1) {
          pending.push(parts.shift()!);
          parts.unshift(pending.join(""));
          pending = [];
          for (const line of parts.splice(0, parts.length - 1)) {
            controller.enqueue(line.endsWith("\r") ? line.slice(0, -1) : line);
          }
        }
        if (parts[0]) pending.push(parts[0]);
      },
      flush(controller) {
        if (pending.length > 0) controller.enqueue(pending.join(""));
      },
    });
  }
}
