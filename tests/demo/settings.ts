/** The demo's flags. */
import { statfsSync } from "node:fs";
import { parseArgs } from "@std/cli/parse-args";
import { LacewingError } from "../../peer/core/errors.ts";
import { formatBytes, parseByteSize } from "../../peer/core/units.ts";

const HOSTS_MAX = 32;

export const USAGE = `Usage: deno task demo [--hosts N] [--size SIZE] [--keep]

  --hosts N     ordinary daemons beside the seed peer, 1 to ${HOSTS_MAX} (default 4)
  --size SIZE   size of the file, such as 64MiB (default 256MiB)
  --keep        keep the folders and logs of all processes, and say where they are
`;

export interface Settings {
  readonly hosts: number;
  /** Bytes. */
  readonly size: number;
  readonly keep: boolean;
}

/**
 * Reads the flags; null is the wish for help.
 *
 * @throws {LacewingError} `usage`
 */
export function readSettings(args: readonly string[]): Settings | null {
  const flags = parseArgs([...args], {
    string: ["hosts", "size"],
    boolean: ["keep", "help"],
    alias: { h: "help" },
    default: { hosts: "4", size: "256MiB" },
    unknown: (argument) => {
      throw new LacewingError("usage", `Cannot read argument ${JSON.stringify(argument)}\n\n${USAGE}`);
    },
  });
  if (flags.help) return null;
  const hosts = Number(flags.hosts);
  if (!/^\d+$/.test(String(flags.hosts)) || hosts < 1 || hosts > HOSTS_MAX) {
    throw new LacewingError(
      "usage",
      `Cannot use --hosts ${JSON.stringify(flags.hosts)}: want a whole number from 1 to ${HOSTS_MAX}`,
    );
  }
  return { hosts, size: parseByteSize(String(flags.size)), keep: flags.keep === true };
}

/**
 * Every host keeps the whole content on this one machine.
 *
 * @throws {LacewingError} `disk_full` when it does not fit into the folder
 */
export function checkSpace({ hosts, size }: Settings, folder: string): void {
  const { bavail, bsize } = statfsSync(folder);
  const [needed, free] = [size * (hosts + 1), bavail * bsize];
  if (needed <= free) return;
  throw new LacewingError(
    "disk_full",
    `Cannot keep ${hosts + 1} copies of ${formatBytes(size)} in ${folder}: ${formatBytes(free)} are free, ` +
      `want ${formatBytes(needed)}; give a smaller --size, fewer --hosts, or another folder by TMPDIR`,
  );
}
