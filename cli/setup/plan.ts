/**
 * The words of `lacewing setup`: what is asked for, what a runtime's planner
 * may look at, and what it answers. A planner writes nothing; what it answers
 * is printed or carried out by others, whole or not at all.
 */
import type { DaemonStatus } from "../../peer/ipc/client.ts";

export const RUNTIMES = ["containerd", "docker", "podman", "crio"] as const;
export type Runtime = typeof RUNTIMES[number];

/** What a running daemon says of its proxy. */
export type ProxyFacts = NonNullable<DaemonStatus["proxy"]>;

export interface Registry {
  /** `HOST` or `HOST:PORT` as it stands in image references; `docker.io` for Docker Hub. */
  readonly host: string;
  /** Whether it was given as `http://HOST`. */
  readonly isPlain: boolean;
}

export interface SetupOrder {
  readonly runtime: Runtime;
  /** Empty: none was named. */
  readonly registries: readonly Registry[];
  /** Where the runtime reaches the proxy: scheme, host and port. */
  readonly mirror: URL;
  /** Null: no daemon was asked. */
  readonly proxy: ProxyFacts | null;
  readonly remove: boolean;
}

/** The machine's configuration as a planner sees it; paths begin with `/`, whatever stands for the root. */
export interface ConfigFiles {
  /** Null: there is no such file. */
  read(path: string): Promise<string | null>;
  /** Names in a folder, ascending; none where there is no such folder. */
  list(folder: string): Promise<string[]>;
  /** Where a file really is, for messages. */
  pathOf(path: string): string;
}

/** One file, before and after; null: it is not there. */
export interface FileChange {
  readonly path: string;
  readonly before: string | null;
  readonly after: string | null;
  /** Whether `before` is the user's own, so that it is kept aside. */
  readonly keepsBackup: boolean;
}

/** What follows the name of a file that was there before the first setup. */
export const BACKUP_SUFFIX = ".lacewing-backup";

/** The text that a file gets back: its backup byte for byte where that says the same; null: it was not there. */
export async function restored(
  { path, text, isSame }: { path: string; text: string; isSame: (a: string, b: string) => boolean },
  files: ConfigFiles,
): Promise<string | null> {
  const backup = await files.read(`${path}${BACKUP_SUFFIX}`);
  if (backup !== null && isSame(backup, text)) return backup;
  return text.trim() === "" ? null : text;
}

/** Whether texts differ in nothing but the newline at their end. */
export function isSameButNewline(a: string, b: string): boolean {
  return a.trimEnd() === b.trimEnd();
}

export interface SetupPlan {
  /** Also files that stay as they are: they are said to be so. */
  readonly changes: readonly FileChange[];
  /** What the user should know or do besides, one sentence each. */
  readonly notes: readonly string[];
}
