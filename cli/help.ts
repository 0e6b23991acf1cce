/** The help of a command, from the tables alone; it fits 80 columns. */
import { COMMAND_TABLE, EXIT_CODES } from "./commands.ts";
import { type CommandName, COMMANDS, isAvailable, type OptionGroup, optionsOf, type OptionSpec } from "./options.ts";

const WIDTH = 80;
/** Column where meanings begin. */
const INDENT = 26;

/** All of a command's help, newline at the end. */
export function renderHelp(command: CommandName): string {
  const spec = COMMAND_TABLE[command];
  const title = command === "download" ? "lacewing: files and images from the hosts around" : `lacewing ${command}`;
  const lines = [title, ...wrap([spec.summary, ...spec.details].join(" ")), "", "Usage:"];
  lines.push(...spec.usage.map((usage) => `  lacewing ${usage}`));
  if (command === "download") {
    lines.push("", "Commands:", ...COMMANDS.filter((name) => name !== "download").flatMap(commandLines));
  }
  const options = optionsOf(command);
  const available = options.filter((option) => isAvailable(option, command));
  for (const group of groupsOf(available)) {
    lines.push("", `${group} options:`);
    lines.push(...available.filter((option) => option.group === group).flatMap(optionLines));
  }
  const idle = options.filter((option) => !isAvailable(option, command)).map(({ name }) => `--${name}`);
  if (idle.length > 0) {
    lines.push("", "Accepted, without effect here (they belong to a download):", ...wrap(idle.join(", "), 2));
  }
  if (spec.examples.length > 0) {
    lines.push("", "Examples:", ...spec.examples.flatMap(([purpose, example]) => [`  # ${purpose}`, `  ${example}`]));
  }
  if (command === "download") {
    lines.push(
      "",
      "Exit codes:",
      ...EXIT_CODES.map(([code, text]) => `  ${code.padEnd(4)}${text}`),
    );
  }
  return lines.join("\n") + "\n";
}

/** `-O, --output PATH`. */
export function optionTerm({ name, short, value }: OptionSpec): string {
  return `${short === undefined ? "    " : `-${short}, `}--${name}${value === undefined ? "" : ` ${value}`}`;
}

/** What the option means, with its default. */
export function optionMeaning({ meaning, default: text }: OptionSpec): string {
  return text === null ? meaning : `${meaning} Default: ${text}.`;
}

/** The groups of these options, in the order of the table. */
export function groupsOf(options: readonly OptionSpec[]): OptionGroup[] {
  return [...new Set(options.map((option) => option.group))];
}

function commandLines(name: CommandName): string[] {
  return entry(name, COMMAND_TABLE[name].summary);
}

function optionLines(option: OptionSpec): string[] {
  return entry(optionTerm(option), optionMeaning(option));
}

function entry(term: string, meaning: string): string[] {
  const [first = "", ...rest] = wrap(meaning, INDENT);
  const head = `  ${term}`;
  if (head.length > INDENT - 2) return [head, first, ...rest];
  return [head.padEnd(INDENT) + first.trimStart(), ...rest];
}

/** Lines of at most 80 columns, broken at spaces. */
function wrap(text: string, indent = 0): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && indent + line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line].map((text) => " ".repeat(indent) + text);
}
