/**
 * Reads configuration: YAML text against a zod schema that is the one
 * declaration of type, default, bound and help text. Unknown keys are refused
 * with the nearest known one. Files and environments are read by the caller.
 */
import { parse } from "@std/yaml";
import { z } from "zod";
import { LacewingError } from "./errors.ts";
import { isSecretName, redactText } from "./log.ts";
import { parseByteSize, parseDuration } from "./units.ts";

/** Characters of a wrong value that a message repeats. */
const VALUE_SHOWN_MAX = 100;
/** How messages call the types that a schema asks for. */
const TYPE_NAMES: Record<string, string> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "a section",
};

/** A size in bytes, written `100Mi`, `1Gi`, `100MB` or as a number of bytes. */
export function byteSize(): z.ZodType<number, string | number> {
  const want = "want a size such as 100Mi, 1Gi or 100MB";
  return z.union([z.string(), z.number(want).int(want).nonnegative(want)], want).transform((value, context) =>
    typeof value === "number" ? value : attempt(() => parseByteSize(value), want, context)
  );
}

/** A duration in milliseconds, written `30s`, `5m`, `1h30m`, `7d` or `0`. */
export function duration(): z.ZodType<number, string | number> {
  const want = "want a duration such as 30s, 5m or 1h30m";
  return z.union([z.string(), z.literal(0)], want).transform((value, context) =>
    value === 0 ? 0 : attempt(() => parseDuration(value), want, context)
  );
}

/** A TCP port; 0 asks for any free one, or means off where the key says so. */
export function port(): z.ZodNumber {
  const want = "want a port number from 0 to 65535";
  return z.number(want).int(want).min(0, want).max(65535, want);
}

/** An absolute http or https URL, kept as text. */
export function httpUrl(): z.ZodString {
  return z.string("want an http or https URL").refine(
    (text) => ["http:", "https:"].includes(URL.parse(text)?.protocol ?? ""),
    "want an http or https URL",
  );
}

/**
 * A section whose keys may all be left out; unknown keys are refused.
 * `{}` and a missing section give every default.
 */
export function section<Shape extends z.ZodRawShape>(shape: Shape): z.ZodPrefault<z.ZodObject<Shape, z.core.$strict>> {
  return z.strictObject(shape).prefault({} as never);
}

/**
 * Parses YAML and validates it; an empty file is an empty section.
 *
 * @param origin the file's name for messages
 * @throws {LacewingError} `config_invalid` naming every path that is wrong, and what is allowed.
 */
export function parseConfig<Schema extends z.ZodType>(
  text: string,
  { schema, origin }: { schema: Schema; origin: string },
): z.output<Schema> {
  let value: unknown;
  try {
    value = parse(text) ?? {};
  } catch (cause) {
    // Only the first line: the others show the file's text, where secrets stand.
    const reason = (cause instanceof Error ? cause.message : String(cause)).split("\n")[0]!.replace(/:$/, "");
    throw new LacewingError("config_invalid", `Cannot read ${origin}: not YAML: ${reason}`, { cause });
  }
  return validateConfig(value, { schema, origin });
}

/** As `parseConfig`, from a value. */
export function validateConfig<Schema extends z.ZodType>(
  value: unknown,
  { schema, origin }: { schema: Schema; origin: string },
): z.output<Schema> {
  const result = schema.safeParse(value, { reportInput: true });
  if (result.success) return result.data;
  const problems = describeIssues(result.error.issues, schema);
  throw new LacewingError(
    "config_invalid",
    `Cannot use ${origin}: ${problems.map(({ path, message }) => `${path || "(top)"}: ${message}`).join("; ")}`,
  );
}

/**
 * What is wrong with a value: dotted paths and sentences, for config files and API bodies alike.
 * The value itself is shown where the schema was run with `reportInput`, unless its name is that of a secret.
 */
export function describeIssues(
  issues: readonly z.core.$ZodIssue[],
  schema?: z.ZodType,
): { path: string; message: string }[] {
  return issues.flatMap((issue) => {
    const path = issue.path.map(String).join(".");
    if (issue.code !== "unrecognized_keys") return [{ path, message: `${issueMessage(issue)}${shownInput(issue)}` }];
    const known = schema === undefined ? [] : keysAt(schema, issue.path);
    return issue.keys.map((key) => {
      const near = nearest(key, known);
      const hint = near === null ? "" : `; did you mean ${JSON.stringify(near)}?`;
      return { path: path === "" ? key : `${path}.${key}`, message: `unknown key${hint}` };
    });
  });
}

/** The candidate within a third of the word's length in edits, or null. */
export function nearest(word: string, candidates: readonly string[]): string | null {
  let best: string | null = null;
  let bestDistance = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** `, not 70000`: the wrong value as far as it is short and no secret. */
function shownInput({ input, path }: z.core.$ZodIssue): string {
  const name = path.findLast((part) => typeof part === "string") ?? "";
  if (input === undefined || isSecretName(String(name))) return "";
  if (typeof input === "object" && input !== null) return Array.isArray(input) ? ", not a list" : ", not a section";
  const text = JSON.stringify(typeof input === "string" ? redactText(input.slice(0, VALUE_SHOWN_MAX)) : input);
  return `, not ${text}`;
}

function issueMessage(issue: z.core.$ZodIssue): string {
  if (issue.code === "invalid_value") {
    return `want one of ${issue.values.map((value) => JSON.stringify(value)).join(", ")}`;
  }
  const want = issue.code === "invalid_type" ? TYPE_NAMES[issue.expected] : undefined;
  if (want === undefined || !("input" in issue) || issue.message.startsWith("want ")) return issue.message;
  return issue.input === undefined ? `missing: want ${want}` : `want ${want}`;
}

function keysAt(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  let current: unknown = unwrap(schema);
  for (const part of path) {
    const shape = (current as { shape?: Record<string, unknown> }).shape;
    const element = (current as { element?: unknown }).element;
    current = unwrap(typeof part === "number" ? element : shape?.[String(part)]);
    if (current === undefined) return [];
  }
  return Object.keys((current as { shape?: object }).shape ?? {});
}

function unwrap(schema: unknown): unknown {
  let current = schema as { def?: { innerType?: unknown; in?: unknown } } | undefined;
  while (current?.def?.innerType !== undefined || current?.def?.in !== undefined) {
    current = (current.def.innerType ?? current.def.in) as typeof current;
  }
  return current;
}

function attempt<T>(read: () => T, message: string, context: z.core.$RefinementCtx): T {
  try {
    return read();
  } catch {
    context.issues.push({ code: "custom", message, input: context.value });
    return z.NEVER;
  }
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitute = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(substitute, previous[j]! + 1, row[j - 1]! + 1));
    }
    previous = row;
  }
  return previous[b.length]!;
}
