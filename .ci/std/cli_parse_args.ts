/**
 * Stands in for `@std/cli/parse-args` where JSR is out of reach. It reads a
 * command line by the same rules: an option that is not boolean takes the next
 * argument unless that starts with a dash; a value that looks like a number is
 * one unless the option is a string; the last of several wins unless collected.
 *
 * Left out, as nothing here uses it: dotted names that build nested objects.
 */

type Names = string | readonly string[];

/** Which options exist and how they are read. */
export interface ParseOptions<DoubleDash extends boolean | undefined = boolean | undefined> {
  /** Puts what follows `--` under the key `--` instead of `_`. */
  "--"?: DoubleDash;
  alias?: Record<string, Names>;
  /** Names that take no value, or true: every `--name` without `=` takes none. */
  boolean?: boolean | Names;
  collect?: Names;
  default?: Record<string, unknown>;
  /** Names whose `--no-name` means false. */
  negatable?: Names;
  /** Leaves everything after the first positional argument unread in `_`. */
  stopEarly?: boolean;
  string?: Names;
  /** Asked about each option that is not declared, and each positional; false drops it. */
  unknown?: (arg: string, key?: string, value?: unknown) => unknown;
}

/** The positionals under `_`, each option under its name and its aliases. */
export type Args<DoubleDash extends boolean | undefined = undefined> =
  & { [name: string]: unknown; _: Array<string | number> }
  & (DoubleDash extends true ? { "--": string[] } : unknown);

type Value = string | boolean;

/** The rules of one command line: what each name means, and what was read so far. */
class Reader {
  readonly result: Record<string, unknown> & { _: Array<string | number> } = { _: [] };
  readonly #options: ParseOptions;
  readonly #aliases = new Map<string, Set<string>>();
  readonly #booleans: Set<string>;
  readonly #strings: Set<string>;
  readonly #collected: Set<string>;
  readonly #negatable: Set<string>;

  constructor(options: ParseOptions) {
    this.#options = options;
    for (const [name, others] of Object.entries(options.alias ?? {})) {
      const family = [name, ...listOf(others)];
      for (const member of family) this.#aliases.set(member, new Set(family.filter((other) => other !== member)));
    }
    this.#booleans = this.#family(typeof options.boolean === "boolean" ? [] : options.boolean);
    this.#strings = this.#family(options.string);
    this.#collected = this.#family(options.collect);
    this.#negatable = this.#family(options.negatable);
  }

  #family(names: Names | undefined): Set<string> {
    return new Set(listOf(names).filter((name) => name !== "").flatMap((name) => [name, ...this.#others(name)]));
  }

  #others(name: string): Iterable<string> {
    return this.#aliases.get(name) ?? [];
  }

  /** Reads one argument. @returns how many arguments it used: 1, or 2 with a value */
  read(arg: string, next: string | undefined): number {
    if (arg.startsWith("--") && arg.length > 2) return this.#readLong(arg, next);
    if (arg.startsWith("-") && arg.length > 1) return this.#readShort(arg, next);
    this.positional(arg);
    return 1;
  }

  positional(arg: string): void {
    if (this.#options.unknown?.(arg) === false) return;
    this.result._.push(this.#strings.has("_") ? arg : numberOr(arg));
  }

  #readLong(arg: string, next: string | undefined): number {
    // Looking from the second character on keeps `--=x` an option named "=x".
    const equals = arg.indexOf("=", 3);
    if (equals !== -1) {
      const raw = arg.slice(2, equals);
      const text = arg.slice(equals + 1);
      // `--no-x=1` sets "x" to 1, as @std/cli does.
      const name = raw.startsWith("no-") && raw.length > 3 ? raw.slice(3) : raw;
      this.#set(name, this.#booleans.has(name) ? text !== "false" : text, arg);
      return 1;
    }
    const name = arg.slice(2);
    const positive = name.startsWith("no-") ? name.slice(3) : "";
    if (this.#negatable.has(positive)) {
      this.#set(positive, false, arg, { append: false });
      return 1;
    }
    const wantsValue = this.#options.boolean !== true && !this.#booleans.has(name);
    if (next && wantsValue && !next.startsWith("-")) return this.#setWithNext(name, next, arg);
    if (next === "true" || next === "false") return this.#setWithNext(name, next === "true", arg);
    this.#set(name, this.#bare(name), arg);
    return 1;
  }

  /** A group such as `-abc`, `-n5`, `-ofile.txt=x`: the last letter may take the next argument. */
  #readShort(arg: string, next: string | undefined): number {
    for (let i = 1; i < arg.length - 1; i++) {
      const letter = arg[i]!;
      const rest = arg.slice(i + 1);
      const value = inlineValue(letter, rest);
      if (value !== undefined) {
        this.#set(letter, value, arg);
        if (rest !== "-") return 1;
      } else {
        this.#set(letter, this.#bare(letter), arg);
      }
    }
    const last = arg.at(-1)!;
    if (last === "-") return 1;
    if (next && !/^--?[^-]/.test(next) && !this.#booleans.has(last)) return this.#setWithNext(last, next, arg);
    if (next === "true" || next === "false") return this.#setWithNext(last, next === "true", arg);
    this.#set(last, this.#bare(last), arg);
    return 1;
  }

  #bare(name: string): Value {
    return this.#strings.has(name) ? "" : true;
  }

  #setWithNext(name: string, value: Value, arg: string): 2 {
    this.#set(name, value, arg);
    return 2;
  }

  #set(name: string, value: Value, arg: string, { append = true } = {}): void {
    const declared = this.#booleans.has(name) || this.#strings.has(name) || this.#aliases.has(name) ||
      this.#collected.has(name) || (this.#options.boolean === true && arg.startsWith("--") && !arg.includes("="));
    if (!declared && this.#options.unknown?.(arg, name, value) === false) return;
    const typed = typeof value === "string" && !this.#strings.has(name) ? numberOr(value) : value;
    for (const key of [name, ...this.#others(name)]) {
      if (key === "__proto__") continue;
      const before = this.result[key];
      const list = append && this.#collected.has(name);
      this.result[key] = list ? [...(Array.isArray(before) ? before : []), typed] : typed;
    }
  }

  /** Gives every declared option that was not seen its default; absent strings stay absent. */
  fillDefaults(): void {
    for (const [name, value] of Object.entries(this.#options.default ?? {})) {
      if (Object.hasOwn(this.result, name)) continue;
      for (const key of [name, ...this.#others(name)]) this.result[key] = value;
    }
    for (const name of [...this.#booleans, ...this.#strings]) {
      if (Object.hasOwn(this.result, name)) continue;
      if (this.#collected.has(name)) this.result[name] = [];
      else if (this.#booleans.has(name)) this.result[name] = false;
    }
  }
}

/** Reads a command line into its positionals and options. */
export function parseArgs<DoubleDash extends boolean | undefined = undefined>(
  args: readonly string[],
  options: ParseOptions<DoubleDash> = {},
): Args<DoubleDash> {
  const reader = new Reader(options);
  const end = args.indexOf("--");
  const read = end === -1 ? args : args.slice(0, end);
  for (let i = 0; i < read.length;) {
    const isPositional = !read[i]!.startsWith("-") || read[i] === "-";
    i += reader.read(read[i]!, read[i + 1]);
    if (options.stopEarly && isPositional) {
      reader.result._.push(...read.slice(i));
      break;
    }
  }
  reader.fillDefaults();
  const rest = end === -1 ? [] : args.slice(end + 1);
  if (options["--"]) reader.result["--"] = rest;
  else reader.result._.push(...rest);
  return reader.result as Args<DoubleDash>;
}

function listOf(names: Names | undefined): readonly string[] {
  return typeof names === "string" ? [names] : names ?? [];
}

function numberOr(text: string): string | number {
  return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
}

/** The value inside a group of short options, as in `-n5`, `-o=x`, `-o/tmp`; undefined when there is none. */
function inlineValue(letter: string, rest: string): string | undefined {
  if (rest === "-") return rest;
  if (rest === "=") return "";
  if (/[A-Za-z]/.test(letter)) {
    const equals = rest.indexOf("=");
    if (equals !== -1 && equals < rest.length - 1) return rest.slice(equals + 1);
    if (/\d\.?$/.test(rest)) return rest;
  }
  return /^\W/.test(rest) && rest.length > 1 ? rest : undefined;
}
