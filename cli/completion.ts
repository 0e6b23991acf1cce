/**
 * Completion scripts of four shells, from the tables alone: commands, the
 * options that work in this version, and files or folders where an option
 * takes a path.
 */
import { COMMAND_TABLE, type SHELLS } from "./commands.ts";
import { type CommandName, COMMANDS, isAvailable, optionsOf, type OptionSpec } from "./options.ts";

export type Shell = typeof SHELLS[number];

/** The script of a shell, newline at the end. */
export function renderCompletion(shell: Shell): string {
  const render: Record<Shell, () => string> = { bash, zsh, fish, powershell };
  return render[shell]();
}

const SUBCOMMANDS = COMMANDS.filter((name) => name !== "download");

function offered(command: CommandName): OptionSpec[] {
  return optionsOf(command).filter((option) => isAvailable(option, command));
}

/** Every way to write the options: `--output`, `-O`. */
function spellings(options: readonly OptionSpec[]): string[] {
  return options.flatMap(({ name, short }) => short === undefined ? [`--${name}`] : [`--${name}`, `-${short}`]);
}

function bash(): string {
  const cases = COMMANDS.map((command) => {
    const options = offered(command);
    const words = [
      ...spellings(options),
      ...(command === "download" ? SUBCOMMANDS : COMMAND_TABLE[command].words ?? []),
    ];
    const ofType = (...types: string[]) => spellings(options.filter(({ type }) => types.includes(type))).join("|");
    const values = [
      [ofType("file"), 'compopt -o filenames; COMPREPLY=($(compgen -f -- "$cur")); return'],
      [ofType("folder"), 'compopt -o filenames; COMPREPLY=($(compgen -d -- "$cur")); return'],
      [ofType("string", "list", "integer", "size", "duration", "url"), "return"],
    ].filter(([names]) => names !== "").map(([names, action]) => `        ${names}) ${action} ;;`);
    return [
      `    ${command})`,
      ...(values.length === 0 ? [] : [`      case "$prev" in`, ...values, "      esac"]),
      `      words="${words.join(" ")}" ;;`,
    ].join("\n");
  });
  return `# bash completion of lacewing
_lacewing() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" command=download words=""
  if [ "$COMP_CWORD" -gt 1 ]; then
    case "\${COMP_WORDS[1]}" in
      ${SUBCOMMANDS.join("|")}) command="\${COMP_WORDS[1]}" ;;
    esac
  fi
  COMPREPLY=()
  case "$command" in
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _lacewing lacewing
`;
}

function zsh(): string {
  const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const spec = (option: OptionSpec) => {
    const meaning = firstSentence(option.meaning).replace(/[[\]:\\]/g, "\\$&");
    const actions: Partial<Record<string, string>> = {
      file: ":file:_files",
      folder: ":folder:_files -/",
      url: ":url:_urls",
    };
    const action = option.type === "bool" ? "" : actions[option.type] ?? `:${option.name}: `;
    const repeat = option.type === "list" ? "*" : "";
    return spellings([option]).map((name) => {
      const equals = option.type === "bool" ? "" : name.startsWith("--") ? "=" : "+";
      return `      ${quote(`${repeat}${name}${equals}[${meaning}]${action}`)}`;
    }).join(" \\\n");
  };
  const cases = COMMANDS.map((command) => {
    const words = command === "download" ? null : COMMAND_TABLE[command].words;
    const argument = command === "download"
      ? ["      '*:url:_urls'"]
      : words === null
      ? []
      : [`      ${quote(`1:argument:(${words.join(" ")})`)}`];
    return `    ${command}) _arguments \\\n${[...offered(command).map(spec), ...argument].join(" \\\n")} ;;`;
  });
  const list = SUBCOMMANDS.map((name) => `      ${quote(`${name}:${COMMAND_TABLE[name].summary}`)}`).join("\n");
  return `#compdef lacewing
# zsh completion of lacewing
_lacewing() {
  local command=download
  if (( CURRENT > 2 )); then
    case "$words[2]" in
      ${SUBCOMMANDS.join("|")}) command="$words[2]"; shift words; (( CURRENT-- )) ;;
    esac
  elif [[ "$words[2]" != -* ]]; then
    local -a commands=(
${list}
    )
    _describe command commands
  fi
  case "$command" in
${cases.join("\n")}
  esac
}
if [ "$funcstack[1]" = "_lacewing" ]; then _lacewing "$@"; else compdef _lacewing lacewing; fi
`;
}

function fish(): string {
  const quote = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const lines = ["# fish completion of lacewing", "complete -c lacewing -f"];
  const none = `not __fish_seen_subcommand_from ${SUBCOMMANDS.join(" ")}`;
  for (const name of SUBCOMMANDS) {
    lines.push(`complete -c lacewing -n ${quote(none)} -a ${name} -d ${quote(COMMAND_TABLE[name].summary)}`);
  }
  for (const command of COMMANDS) {
    const condition = quote(command === "download" ? none : `__fish_seen_subcommand_from ${command}`);
    for (const { name, short, type, meaning } of offered(command)) {
      const files = type === "file" ? " -r -F" : type === "folder" ? " -x -a '(__fish_complete_directories)'" : " -x";
      const value = type === "bool" ? "" : files;
      const letter = short === undefined ? "" : ` -s ${short}`;
      lines.push(
        `complete -c lacewing -n ${condition}${letter} -l ${name}${value} -d ${quote(firstSentence(meaning))}`,
      );
    }
    const words = command === "download" ? null : COMMAND_TABLE[command].words;
    if (words !== null) lines.push(`complete -c lacewing -n ${condition} -a ${quote(words.join(" "))}`);
  }
  return lines.join("\n") + "\n";
}

function powershell(): string {
  const quote = (text: string) => `'${text.replaceAll("'", "''")}'`;
  const table = COMMANDS.map((command) => {
    const words = [
      ...(command === "download"
        ? SUBCOMMANDS.map((name) => [name, COMMAND_TABLE[name].summary] as const)
        : (COMMAND_TABLE[command].words ?? []).map((word) => [word, word] as const)),
      ...offered(command).flatMap((option) =>
        spellings([option]).map((name) => [name, firstSentence(option.meaning)] as const)
      ),
    ];
    const rows = words.map(([word, meaning]) => `      @(${quote(word)}, ${quote(meaning)})`);
    return `    ${command} = @(\n${rows.join(",\n")}\n    )`;
  });
  return `# PowerShell completion of lacewing
Register-ArgumentCompleter -Native -CommandName lacewing -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $table = [System.Collections.Hashtable]::new([System.StringComparer]::Ordinal)
  $table += @{
${table.join("\n")}
  }
  $elements = @($commandAst.CommandElements | ForEach-Object { $_.ToString() })
  $command = 'download'
  if ($elements.Count -gt 1 -and $elements[1] -cne $wordToComplete -and $table.ContainsKey($elements[1])) {
    $command = $elements[1]
  }
  $table[$command] | Where-Object { $_[0].StartsWith($wordToComplete, [System.StringComparison]::Ordinal) } | ForEach-Object {
    [System.Management.Automation.CompletionResult]::new($_[0], $_[0], 'ParameterName', $_[1])
  }
}
`;
}

/** Long meanings would not fit a completion menu. */
function firstSentence(text: string): string {
  return text.split(/[.;:](?: |$)/, 1)[0] ?? text;
}
