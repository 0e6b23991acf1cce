/**
 * The one table of commands: what each is for, its arguments, its examples.
 * Help, completions, man pages and Markdown are made from it.
 */
import { type CommandName, COMMANDS } from "./options.ts";
import { RUNTIMES } from "./setup/plan.ts";

export interface CommandSpec {
  readonly summary: string;
  /** Usage lines after `lacewing `. */
  readonly usage: readonly string[];
  readonly details: readonly string[];
  /** What it does, and the command line. */
  readonly examples: readonly (readonly [string, string])[];
  /** Words that may stand as its argument; null: none is taken. */
  readonly words: readonly string[] | null;
}

export const SHELLS = ["bash", "zsh", "fish", "powershell"] as const;

export const COMMAND_TABLE: Record<CommandName, CommandSpec> = {
  download: {
    summary: "Download a file from other hosts and from its origin.",
    usage: ["<url> -O <path> [options]", "-u <url> -O <path> [options]", "<command> [options]"],
    details: [
      "The daemon of this host does the work; where none runs, one is started. Without a daemon the file comes from " +
      "its origin.",
    ],
    examples: [
      ["Into a folder, under the URL's own name", "lacewing https://example.com/model.bin -O /data/"],
      ["Checked", "lacewing -u https://example.com/a.iso -O /tmp/a.iso --digest sha256:<hex>"],
      ["Signed URLs of one file are one content", "lacewing \"$URL\" -O /tmp/a --filter 'Expires&Signature'"],
      ["Into a pipe, at most 20 MB a second", "lacewing https://example.com/a.tar -O - --ratelimit 20MB | tar x"],
    ],
    words: null,
  },
  completion: {
    summary: "Print the completion script of a shell.",
    usage: ["completion bash|zsh|fish|powershell"],
    details: ["Load it in the shell's start file, or put it where the shell looks for completions."],
    examples: [
      ["bash, now", "source <(lacewing completion bash)"],
      ["zsh", 'lacewing completion zsh > "${fpath[1]}/_lacewing"'],
      ["fish", "lacewing completion fish > ~/.config/fish/completions/lacewing.fish"],
      ["PowerShell", "lacewing completion powershell | Out-String | Invoke-Expression"],
    ],
    words: SHELLS,
  },
  daemon: {
    summary: "Run the daemon of this host.",
    usage: ["daemon [options]"],
    details: ["It serves downloads of this host and hands pieces to other hosts, until SIGINT or SIGTERM."],
    examples: [["With a configuration file", "lacewing daemon --config /etc/lacewing/client.yaml"]],
    words: null,
  },
  doc: {
    summary: "Write the manual as Markdown and man pages.",
    usage: ["doc --path DIR"],
    details: ["Writes NAME.md and NAME.1 for every command."],
    examples: [["Man pages for this user", "lacewing doc --path ~/.local/share/man/man1"]],
    words: null,
  },
  help: {
    summary: "Show help about a command.",
    usage: ["help [command]"],
    details: [],
    examples: [["About the daemon", "lacewing help daemon"]],
    words: COMMANDS.filter((name) => name !== "download"),
  },
  plugin: {
    summary: "List what can be downloaded from.",
    usage: ["plugin"],
    details: [
      "One line a URL scheme: its name, and where its reader comes from. Plug-ins are ES modules SCHEME.ts or " +
      "SCHEME.js that export createSource(), in $LACEWING_PLUGIN_DIR, else in plugins in the daemon's work home. " +
      "Bundles and runs from source load them; compiled executables may be unable to.",
    ],
    examples: [["Of another folder", "LACEWING_PLUGIN_DIR=~/plugins lacewing plugin"]],
    words: null,
  },
  setup: {
    summary: "Make a container runtime of this machine pull through the daemon.",
    usage: [`setup ${RUNTIMES.join("|")} [--registry HOST]...`, "setup RUNTIME --dry-run|--remove"],
    details: [
      "Writes the runtime's own configuration: containerd's certs.d, dockerd's daemon.json, a drop-in of " +
      "registries.conf for podman, skopeo, buildah and CRI-O. What stands in a file already stays; a copy of it is kept " +
      "as FILE.lacewing-backup. A second run changes nothing.",
    ],
    examples: [
      ["Every registry, for containerd", "lacewing setup containerd"],
      ["What would be written for podman", "lacewing setup podman --registry registry.example.com --dry-run"],
      ["Docker Hub, for dockerd", "lacewing setup docker"],
      ["Back to how it was", "lacewing setup containerd --remove"],
    ],
    words: RUNTIMES,
  },
  task: {
    summary: "Explain which task a URL is, and who has it.",
    usage: ["task explain URL [--filter 'NAME&NAME'] [--tag TAG] [--json]"],
    details: [
      "Prints the task's id and what went into it, whether this daemon, the other hosts of the cluster or a preheat " +
      "have it, and which task the daemon's proxy makes of the same URL: where both differ, a preheat is not found by a " +
      "pull, and the reason is told. Without a daemon only the id is told.",
    ],
    examples: [
      ["A layer that was preheated", "lacewing task explain https://registry.example.com/v2/app/blobs/sha256:<hex>"],
      [
        "A signed URL, for a script",
        "lacewing task explain 'https://h/f?Expires=1' --filter Expires --json",
      ],
    ],
    words: ["explain"],
  },
  version: {
    summary: "Show the version.",
    usage: ["version [--json]"],
    details: [],
    examples: [["For a script", "lacewing version --json"]],
    words: null,
  },
};

/** Exit codes and what each says, INTERFACE section 2. */
export const EXIT_CODES: readonly (readonly [string, string])[] = [
  ["0", "done"],
  ["1", "unknown failure"],
  ["2", "wrong use or configuration"],
  ["3", "not found at the origin"],
  ["4", "refused by the origin"],
  ["5", "network, or no host has it"],
  ["6", "timeout"],
  ["7", "TLS"],
  ["8", "failure of the origin"],
  ["9", "disk full"],
  ["11", "local file"],
  ["12", "digest does not match"],
  ["13", "range not there, or content changed"],
  ["14", "daemon needed and not there"],
  ["15", "refused by policy"],
  ["130", "interrupted (143: terminated)"],
];
