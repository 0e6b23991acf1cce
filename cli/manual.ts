/** The manual of a command as Markdown and as a man page (roff), from the tables alone. */
import { COMMAND_TABLE, EXIT_CODES } from "./commands.ts";
import { groupsOf, optionMeaning, optionTerm } from "./help.ts";
import { type CommandName, COMMANDS, isAvailable, optionsOf, type OptionSpec } from "./options.ts";

/** Every file of the manual: its name and its text. */
export function manualFiles(version: string): { name: string; text: string }[] {
  return COMMANDS.flatMap((command) => [
    { name: `${pageName(command)}.md`, text: renderMarkdown(command) },
    { name: `${pageName(command)}.1`, text: renderManPage(command, version) },
  ]);
}

/** `lacewing`, `lacewing-daemon`. */
function pageName(command: CommandName): string {
  return command === "download" ? "lacewing" : `lacewing-${command}`;
}

export function renderMarkdown(command: CommandName): string {
  const spec = COMMAND_TABLE[command];
  const title = command === "download" ? "lacewing" : `lacewing ${command}`;
  const blocks = [
    `# ${title}`,
    [spec.summary, ...spec.details].join(" "),
    fence(spec.usage.map((usage) => `lacewing ${usage}`)),
  ];
  if (command === "download") {
    const rows = COMMANDS.filter((name) => name !== "download").map((name) =>
      `| [${name}](${pageName(name)}.md) | ${cell(COMMAND_TABLE[name].summary)} |`
    );
    blocks.push("## Commands", ["| command | purpose |", "|---|---|", ...rows].join("\n"));
  }
  const { available, idle } = split(command);
  for (const group of groupsOf(available)) {
    const rows = available.filter((option) => option.group === group).map((option) =>
      `| \`${optionTerm(option).trim()}\` | ${cell(optionMeaning(option))} |`
    );
    blocks.push(`## ${group} options`, ["| option | meaning |", "|---|---|", ...rows].join("\n"));
  }
  if (idle.length > 0) {
    blocks.push("## Options without effect here", idle.map(({ name }) => `\`--${name}\``).join(", "));
  }
  if (spec.examples.length > 0) {
    blocks.push("## Examples", fence(spec.examples.flatMap(([purpose, example]) => [`# ${purpose}`, example])));
  }
  if (command === "download") {
    const rows = EXIT_CODES.map(([code, text]) => `| ${code} | ${text} |`);
    blocks.push("## Exit codes", ["| code | meaning |", "|---|---|", ...rows].join("\n"));
  }
  return blocks.join("\n\n") + "\n";
}

export function renderManPage(command: CommandName, version: string): string {
  const spec = COMMAND_TABLE[command];
  const name = pageName(command);
  const lines = [
    `.TH ${name.toUpperCase()} 1 "" "lacewing ${version}" "Lacewing"`,
    ".SH NAME",
    `${roff(name)} \\- ${roff(spec.summary.replace(/\.$/, ""))}`,
    ".SH SYNOPSIS",
    spec.usage.map((usage) => `\\fBlacewing\\fR ${roff(usage)}`).join("\n.br\n"),
    ".SH DESCRIPTION",
    roff([spec.summary, ...spec.details].join(" ")),
  ];
  if (command === "download") {
    lines.push(".SH COMMANDS");
    for (const other of COMMANDS.filter((name) => name !== "download")) {
      lines.push(".TP", `\\fB${roff(other)}\\fR`, roff(COMMAND_TABLE[other].summary));
    }
  }
  const { available, idle } = split(command);
  for (const group of groupsOf(available)) {
    lines.push(`.SH ${group.toUpperCase()} OPTIONS`);
    for (const option of available.filter((option) => option.group === group)) {
      lines.push(".TP", `\\fB${roff(optionTerm(option).trim())}\\fR`, roff(optionMeaning(option)));
    }
  }
  if (idle.length > 0) {
    lines.push(".SH OPTIONS WITHOUT EFFECT HERE", roff(idle.map(({ name }) => `--${name}`).join(", ")));
  }
  if (spec.examples.length > 0) lines.push(".SH EXAMPLES");
  for (const [purpose, example] of spec.examples) lines.push(".TP", roff(purpose), `\\fB${roff(example)}\\fR`);
  if (command === "download") {
    lines.push(".SH EXIT STATUS");
    for (const [code, text] of EXIT_CODES) lines.push(".TP", `\\fB${code}\\fR`, roff(text));
  }
  return lines.join("\n") + "\n";
}

function split(command: CommandName): { available: OptionSpec[]; idle: OptionSpec[] } {
  const options = optionsOf(command);
  return {
    available: options.filter((option) => isAvailable(option, command)),
    idle: options.filter((option) => !isAvailable(option, command)),
  };
}

function fence(lines: readonly string[]): string {
  return ["```sh", ...lines, "```"].join("\n");
}

/** Text inside a table of Markdown. */
function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("<", "&lt;");
}

/** Text for roff: no escape, no hyphen that is none, no line that is a command. */
function roff(text: string): string {
  return text.replaceAll("\\", "\\e").replaceAll("-", "\\-").replace(/^([.'])/gm, "\\&$1");
}
