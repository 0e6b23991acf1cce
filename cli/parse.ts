/**
 * Reads a command line against the table of options: which command, which
 * values, which arguments. Whatever is wrong is a `usage` error that names the
 * option; values are still text here.
 *
 * `parseArgs` reads the options in one plain form, `--name=value`. Bringing
 * them there is done here by the table, because only the table knows that
 * `--range -50` and `-O -` are values and `-Ofile` is one option.
 */
import { parseArgs } from "@std/cli/parse-args";
import { LacewingError } from "../peer/core/errors.ts";
import { type CommandName, COMMANDS, OPTIONS, optionsOf, type OptionSpec } from "./options.ts";

export interface ParsedCommand {
  readonly command: CommandName;
  /** Arguments that are no options. */
  readonly positionals: readonly string[];
  /** Options given, by long name: true or false, text, or all texts of a list (and of `url`). */
  readonly values: ReadonlyMap<string, boolean | string | readonly string[]>;
}

/** @throws {LacewingError} `usage` for anything that the command does not know or take. */
export function parseCommand(args: readonly string[]): ParsedCommand {
  const named = COMMANDS.find((name) => name !== "download" && name === args[0]);
  const command = named ?? "download";
  const plain = normalize(named === undefined ? args : args.slice(1), command);
  if (named === undefined) checkNoCommand(plain[plain.indexOf("--") + 1]);
  const known = optionsOf(command);
  const namesOf = (test: (option: OptionSpec) => boolean) => known.filter(test).map((option) => option.name);
  const parsed = parseArgs(plain, {
    boolean: namesOf((option) => option.type === "bool"),
    string: ["_", ...namesOf((option) => option.type !== "bool")],
    collect: namesOf(isCollected),
  });
  // parseArgs also fills in what was not given; only what was given may conflict.
  const given = new Set(plain.slice(0, plain.indexOf("--")).map((arg) => arg.slice(2).split("=", 1)[0] ?? ""));
  const values = new Map(known.filter(({ name }) => given.has(name)).map(({ name }) => [name, parsed[name]] as const));
  checkTogether(values as ParsedCommand["values"]);
  return { command, positionals: parsed._.map(String), values: values as ParsedCommand["values"] };
}

/** No URL is a command's name alone: it came too late. */
function checkNoCommand(word: string | undefined): void {
  if (!COMMANDS.some((name) => name !== "download" && name === word)) return;
  throw usage(`Cannot use ${word} after options: the command comes first, as in "lacewing ${word} --help"`);
}

/** Long options in the form `--name=value`, then `--`, then the arguments. */
function normalize(args: readonly string[], command: CommandName): string[] {
  const options: string[] = [];
  const positionals: string[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!;
    if (arg === "--") {
      positionals.push(...args.slice(i + 1));
      break;
    }
    if (!arg.startsWith("-") || arg === "-") {
      positionals.push(arg);
      continue;
    }
    const read = arg.startsWith("--") ? readLong(arg, command) : readShort(arg, command);
    for (const { option, shown, text } of read) {
      if (text !== null) options.push(`--${option.name}=${text}`);
      else if (option.type === "bool") options.push(`--${option.name}=true`);
      else options.push(`--${option.name}=${valueOf({ option, shown }, args[++i])}`);
    }
  }
  return [...options, "--", ...positionals];
}

interface Found {
  option: OptionSpec;
  /** The option as the user wrote it. */
  shown: string;
  /** Null: not in this argument. */
  text: string | null;
}

function readLong(arg: string, command: CommandName): Found[] {
  const equals = arg.indexOf("=");
  const shown = equals === -1 ? arg : arg.slice(0, equals);
  const option = find((candidate) => `--${candidate.name}` === shown, { shown, command });
  const text = equals === -1 ? null : arg.slice(equals + 1);
  if (option.type === "bool" && text !== null && text !== "true" && text !== "false") {
    throw usage(`Cannot use ${shown}=${text}: ${shown} takes true or false, or no value`);
  }
  return [{ option, shown, text }];
}

/** `-b`, several as in `-bh`, and a value at once as in `-Ofile` or `-O=file`. */
function readShort(arg: string, command: CommandName): Found[] {
  const found: Found[] = [];
  for (let at = 1; at < arg.length; at++) {
    const shown = `-${arg[at]}`;
    const option = find((candidate) => candidate.short === arg[at], { shown, command });
    const rest = arg.slice(at + 1);
    if (option.type !== "bool") return [...found, { option, shown, text: rest === "" ? null : rest.replace(/^=/, "") }];
    found.push({ option, shown, text: null });
  }
  return found;
}

function find(
  matches: (option: OptionSpec) => boolean,
  { shown, command }: { shown: string; command: CommandName },
): OptionSpec {
  const option = OPTIONS.find((candidate) => matches(candidate) && candidate.commands.includes(command));
  if (option === undefined) {
    const known = optionsOf(command).map(({ name }) => `--${name}`);
    const message = `Cannot use ${shown}: there is no such option${placeOf(matches, command)}`;
    throw new NotKnown(message, { word: shown, known });
  }
  return option;
}

/** Of which command there is no such option, and which one has it. */
function placeOf(matches: (option: OptionSpec) => boolean, command: CommandName): string {
  if (command !== "download") return ` with "${command}"`;
  const owners = OPTIONS.filter(matches).flatMap(({ commands }) => commands);
  return owners.length === 0 ? "" : ` of a download; it belongs to "${owners.join('", "')}", and a command comes first`;
}

/**
 * A word that is not among those known. Which of them is nearest is found out where the
 * error is shown: that needs more code than a command line without mistakes.
 */
export class NotKnown extends LacewingError {
  readonly word: string;
  readonly known: readonly string[];

  constructor(message: string, { word, known }: { word: string; known: readonly string[] }) {
    super("usage", message);
    this.word = word;
    this.known = known;
  }
}

function valueOf({ option, shown }: { option: OptionSpec; shown: string }, next: string | undefined): string {
  const isOption = next !== undefined && /^-[^-\d]|^--/.test(next) &&
    OPTIONS.some(({ name, short }) => next === `-${short}` || next === `--${name}` || next.startsWith(`--${name}=`));
  if (next !== undefined && !isOption) return next;
  const after = next === undefined ? "" : `, and ${next} is an option (write ${shown}=${next} if you mean it)`;
  throw usage(`Cannot use ${shown}: its value ${option.value ?? ""} is missing${after}`);
}

function checkTogether(values: ParsedCommand["values"]): void {
  const isOn = (name: string) => values.has(name) && values.get(name) !== false;
  for (const option of OPTIONS.filter(({ name }) => isOn(name))) {
    const conflict = option.conflicts?.find(isOn);
    if (conflict !== undefined) throw usage(`Cannot use --${option.name} together with --${conflict}: leave one out`);
    const needed = option.needs?.find((name) => !isOn(name));
    if (needed !== undefined) throw usage(`Cannot use --${option.name} without --${needed}`);
  }
}

/** Options that may come several times; two URLs must be seen to be refused. */
function isCollected({ type }: OptionSpec): boolean {
  return type === "list" || type === "url";
}

function usage(message: string): LacewingError {
  return new LacewingError("usage", message);
}
