/**
 * Stands in for `@std/yaml` where JSR is out of reach, on the npm package that `@std/yaml` descends from.
 * Errors are `SyntaxError`s that name line and column, duplicate keys are refused, an empty document is null.
 *
 * Known differences: there an integer with a leading zero (`0777`) is octal, here decimal, so quote such
 * values; there a tab may indent a list, here it is refused.
 */
// Named here and not in the import maps, because nothing but this file needs it.
// deno-lint-ignore no-import-prefix
// @ts-types="npm:@types/js-yaml@4.0.9"
import { dump, load, YAMLException } from "npm:js-yaml@4.3.2";

/** What `stringify()` does differently when asked. */
export interface StringifyOptions {
  /** Spaces a level is indented by; 2 when absent. */
  indent?: number;
  /** Longest line before a text is folded; 80 when absent, -1 for no folding. */
  lineWidth?: number;
  /** Leaves out functions and undefined instead of throwing. */
  skipInvalid?: boolean;
  /** Sorts the keys of mappings; they keep their order when absent. */
  sortKeys?: boolean;
  /** Writes the second sight of an object as an alias; true when absent. */
  useAnchors?: boolean;
}

/**
 * The value of a text that holds one YAML document; null when it is empty.
 * @throws {SyntaxError} with line and column, also on a duplicate key
 */
export function parse(content: string): unknown {
  try {
    return load(content) ?? null;
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const { mark, reason } = error;
    const place = mark ? ` at line ${mark.line + 1}, column ${mark.column + 1}:\n${mark.snippet}` : "";
    throw new SyntaxError(`${reason}${place}`, { cause: error });
  }
}

/**
 * A value as one YAML document with a final line end.
 * @throws {TypeError} if it holds a function or undefined, unless they are skipped
 */
export function stringify(data: unknown, options: StringifyOptions = {}): string {
  try {
    // On its own the package leaves undefined out.
    const replacer = (key: string, value: unknown) => {
      if (value === undefined) throw new TypeError(`Cannot stringify undefined${key === "" ? "" : ` at "${key}"`}`);
      return value;
    };
    return dump(data, options.skipInvalid ? options : { ...options, replacer });
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    throw new TypeError(error.message, { cause: error });
  }
}
