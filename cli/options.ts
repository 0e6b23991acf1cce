/**
 * The one table of options. Parser, help, completions, man pages and Markdown
 * are all made from it, so that none of them can say something else.
 *
 * An option whose `available` leaves a command out is accepted there, as the
 * original's daemon does, and said to have no effect: by the command and by the help.
 */

import { SETUP_OPTIONS } from "./setup/options.ts";

export const COMMANDS = [
  "download",
  "completion",
  "daemon",
  "doc",
  "help",
  "plugin",
  "setup",
  "task",
  "version",
] as const;
/** `download` is what happens without a command's name. */
export type CommandName = (typeof COMMANDS)[number];

/** How the text of a value is read and completed. */
export type OptionType = "bool" | "string" | "list" | "integer" | "size" | "duration" | "file" | "folder" | "url";

export type OptionGroup =
  | "Output"
  | "Request"
  | "Swarm"
  | "Recursive download"
  | "Runtime"
  | "Daemon"
  | "Logs"
  | "General";

export interface OptionSpec {
  /** Long name without dashes. */
  readonly name: string;
  readonly short?: string;
  readonly type: OptionType;
  /** What the help calls its value; none for `bool`. */
  readonly value?: string;
  /** The value when it is not given, as the user would write it; null: none. */
  readonly default: string | null;
  readonly meaning: string;
  readonly group: OptionGroup;
  /** Commands that know it. */
  readonly commands: readonly CommandName[];
  /** Those where it has an effect; default: all of `commands`. */
  readonly available?: readonly CommandName[];
  /** Options that may not be given together with it. */
  readonly conflicts?: readonly string[];
  /** Options that it has no meaning without. */
  readonly needs?: readonly string[];
}

const BOTH = ["download", "daemon"] as const;
const CLIENT = ["download"] as const;

/** Every option of SEED section 4.3, and the few of the smaller commands. */
export const OPTIONS: readonly OptionSpec[] = [
  {
    name: "output",
    short: "O",
    type: "file",
    value: "PATH",
    default: null,
    meaning: "Where the file goes. A folder (or a path with / at its end) takes the URL's last name in it; - streams " +
      "to stdout; without this option the URL's last name in the working folder. An existing file is replaced at once " +
      "at the end; a symbolic link is replaced itself, not what it points to.",
    group: "Output",
    commands: BOTH,
    available: CLIENT,
  },
  {
    name: "range",
    type: "string",
    value: "RANGE",
    default: null,
    meaning: "Only these bytes: 0-9 (ten bytes), 150- (from there on) or -50 (the last fifty).",
    group: "Output",
    commands: CLIENT,
    conflicts: ["recursive"],
  },
  {
    name: "original-offset",
    type: "bool",
    default: null,
    meaning:
      "Put the bytes of --range at their place in the output, a second name of the daemon's own file that several " +
      "ranges fill. Needs the daemon, and the output on its file system.",
    group: "Output",
    commands: CLIENT,
    needs: ["range"],
  },
  {
    name: "digest",
    type: "string",
    value: "ALGORITHM:HEX",
    default: null,
    meaning: "Check the output against md5:, sha1:, sha256: or sha512: before it gets its name.",
    group: "Output",
    commands: BOTH,
    available: CLIENT,
    conflicts: ["tag", "recursive"],
  },
  {
    name: "show-progress",
    short: "b",
    type: "bool",
    default: null,
    meaning: "Show a progress bar on stderr; without a terminal, a line every 10 s.",
    group: "Output",
    commands: BOTH,
    available: CLIENT,
    conflicts: ["console"],
  },
  {
    name: "url",
    short: "u",
    type: "url",
    value: "URL",
    default: null,
    meaning: "What to download; the same as the first argument.",
    group: "Request",
    commands: BOTH,
    available: CLIENT,
  },
  {
    name: "header",
    short: "H",
    type: "list",
    value: "'NAME: VALUE'",
    default: null,
    meaning: "A request header for the URL's own host; may be given several times.",
    group: "Request",
    commands: BOTH,
    available: CLIENT,
  },
  {
    name: "timeout",
    type: "duration",
    value: "DURATION",
    default: "0",
    meaning: "Give up after this long, such as 30s, 5m or 1h30m; 0 never gives up.",
    group: "Request",
    commands: BOTH,
    available: CLIENT,
  },
  {
    name: "ratelimit",
    type: "size",
    value: "RATE",
    default: "100.0MB",
    meaning: "Bytes a second for this download, such as 512K, 20MB or 1.5G; 0 is no limit.",
    group: "Request",
    commands: CLIENT,
  },
  {
    name: "limit",
    type: "size",
    value: "RATE",
    default: "0.0B",
    meaning: "Bytes a second for all downloads of the daemon together; 0 is no limit.",
    group: "Request",
    commands: ["daemon"],
  },
  {
    name: "filter",
    type: "string",
    value: "'NAME&NAME'",
    default: null,
    meaning: "Query parameters to leave out of the URL when hosts look for those who have the same content, such as " +
      "'Expires&Signature'. The request itself keeps them.",
    group: "Swarm",
    commands: [...BOTH, "task"],
    available: [...CLIENT, "task"],
  },
  {
    name: "tag",
    type: "string",
    value: "TAG",
    default: null,
    meaning: "Keep this content apart from the same URL under another tag.",
    group: "Swarm",
    commands: [...BOTH, "task"],
    available: [...CLIENT, "task"],
    conflicts: ["digest"],
  },
  {
    name: "disable-back-source",
    type: "bool",
    default: null,
    meaning: "Take the content from other hosts only, never from the origin.",
    group: "Swarm",
    commands: BOTH,
    available: CLIENT,
  },
  {
    name: "recursive",
    short: "r",
    type: "bool",
    default: null,
    meaning: "Download everything below the URL into the folder --output (default: the URL's last folder name in the " +
      "working folder). A second run fetches only what is missing or changed.",
    group: "Recursive download",
    commands: BOTH,
    available: CLIENT,
  },
  {
    name: "level",
    type: "integer",
    value: "N",
    default: "5",
    meaning: "How many folders deep to go; 1 is the URL's own folder, 0 has no limit (but 100).",
    group: "Recursive download",
    commands: BOTH,
    available: CLIENT,
    needs: ["recursive"],
  },
  {
    name: "list",
    short: "l",
    type: "bool",
    default: null,
    meaning: "Print the URLs that would be downloaded, one a line, and download nothing.",
    group: "Recursive download",
    commands: BOTH,
    available: CLIENT,
    needs: ["recursive"],
  },
  {
    name: "accept-regex",
    type: "string",
    value: "REGEX",
    default: null,
    meaning: "Only files whose complete URL matches; quote it.",
    group: "Recursive download",
    commands: BOTH,
    available: CLIENT,
    needs: ["recursive"],
  },
  {
    name: "reject-regex",
    type: "string",
    value: "REGEX",
    default: null,
    meaning: "No files whose complete URL matches; quote it.",
    group: "Recursive download",
    commands: BOTH,
    available: CLIENT,
    needs: ["recursive"],
  },
  ...SETUP_OPTIONS,
  {
    name: "daemon-sock",
    type: "file",
    value: "PATH",
    default: Deno.build.os === "darwin" ? "/tmp/daemon.sock" : "/var/run/daemon.sock",
    meaning: "Socket of the daemon. Where the default cannot be written, daemon.sock in $XDG_RUNTIME_DIR/lacewing.",
    group: "Daemon",
    commands: [...BOTH, "setup", "task"],
  },
  {
    name: "config",
    type: "file",
    value: "FILE",
    default: null,
    meaning: "Configuration file (YAML). Also from the environment variable CLIENT_CONFIG; the daemon then takes " +
      "/etc/lacewing/client.yaml if it is there.",
    group: "Daemon",
    commands: ["download", "daemon", "plugin"],
  },
  {
    name: "workhome",
    type: "folder",
    value: "FOLDER",
    default: null,
    meaning: "Where the daemon keeps its contents: /var/lib/lacewing, or lacewing in $XDG_STATE_HOME.",
    group: "Daemon",
    commands: ["download", "daemon", "plugin"],
  },
  {
    name: "logdir",
    type: "folder",
    value: "FOLDER",
    default: null,
    meaning: "Where core.log goes: /var/log/lacewing/client (daemon: /var/log/lacewing/daemon), or below " +
      "$XDG_STATE_HOME/lacewing.",
    group: "Logs",
    commands: BOTH,
  },
  {
    name: "console",
    type: "bool",
    default: null,
    meaning: "Write log records to stdout instead of the log file.",
    group: "Logs",
    commands: BOTH,
    conflicts: ["show-progress"],
  },
  {
    name: "verbose",
    type: "bool",
    default: null,
    meaning: "Log at debug level, and say on stderr which daemon is used.",
    group: "Logs",
    commands: BOTH,
  },
  {
    name: "jaeger",
    type: "url",
    value: "URL",
    default: null,
    meaning:
      "Send traces to this OTLP/HTTP collector, such as http://127.0.0.1:4318; a daemon that the client starts " +
      "does so too.",
    group: "Logs",
    commands: BOTH,
  },
  {
    name: "service-name",
    type: "string",
    value: "NAME",
    default: "lacewing-client",
    meaning: "The name that traces carry; for the daemon it is lacewing-daemon if not given.",
    group: "Logs",
    commands: BOTH,
  },
  {
    name: "pprof-port",
    type: "integer",
    value: "PORT",
    default: "-1",
    meaning: "Serve profiles for pprof on this port of loopback; 0 takes a free one, -1 is off.",
    group: "Logs",
    commands: BOTH,
  },
  {
    name: "json",
    type: "bool",
    default: null,
    meaning: "Print JSON.",
    group: "General",
    commands: ["task", "version"],
  },
  {
    name: "path",
    type: "folder",
    value: "DIR",
    default: ".",
    meaning: "Folder that the documents are written into; it is made if it is not there.",
    group: "General",
    commands: ["doc"],
  },
  {
    name: "help",
    short: "h",
    type: "bool",
    default: null,
    meaning: "Show this help.",
    group: "General",
    commands: COMMANDS,
  },
];

/** Options that a command knows, in the order of the table. */
export function optionsOf(command: CommandName): OptionSpec[] {
  return OPTIONS.filter((option) => option.commands.includes(command));
}

/** Whether the option works with the command in this version. */
export function isAvailable(option: OptionSpec, command: CommandName): boolean {
  return (option.available ?? option.commands).includes(command);
}
