/** Stands in for `@std/streams` where JSR is out of reach: only what this project imports. */
export * from "./streams_text_line_stream.ts";
export * from "./streams_to_text.ts";
