/**
 * The configuration files of a machine, or of a folder that stands for its
 * root: reads them for the planners, and carries a plan out.
 *
 * Keeps: a file appears whole under its name or not at all; every new text is
 * written beside its place before the first name changes; what was there
 * before the first setup stays as `FILE.lacewing-backup` until it is restored.
 */
import { LacewingError } from "../../peer/core/errors.ts";
import { attempt, lstat } from "../output_file.ts";
import { splitPath, temporaryName } from "../output_path.ts";
import { BACKUP_SUFFIX, type ConfigFiles, type FileChange } from "./plan.ts";

const NEW_FILE_MODE = 0o644;

/** What was done to a file, as a word and its path. */
export interface Done {
  readonly what: "created" | "changed" | "removed" | "unchanged" | "kept";
  readonly path: string;
}

interface Staged {
  readonly change: FileChange;
  /** Where links lead to: a link to a file stays a link. */
  readonly target: string;
  readonly temporary: string | null;
}

/** @param root absolute path of the folder that stands for `/` */
export class MachineFiles implements ConfigFiles {
  constructor(private readonly root: string) {}

  pathOf(path: string): string {
    return this.root === "/" ? path : this.root + path;
  }

  async read(path: string): Promise<string | null> {
    const place = this.pathOf(path);
    try {
      return textOf(await Deno.readFile(place), place);
    } catch (cause) {
      if (!isMissing(cause)) return await attempt(`read ${place}`, () => Promise.reject(cause));
      // A file in the place of a link would cut off whoever keeps what the link is for.
      const link = await Deno.lstat(place).catch(() => null);
      if (link === null) return null;
      throw new LacewingError("file", `Cannot read ${place}: it is a link that leads nowhere`, { cause });
    }
  }

  async list(folder: string): Promise<string[]> {
    const place = this.pathOf(folder);
    try {
      return (await Array.fromAsync(Deno.readDir(place))).map(({ name }) => name).sort();
    } catch (cause) {
      if (isMissing(cause)) return [];
      return await attempt(`read ${place}`, () => Promise.reject(cause));
    }
  }

  /** Carries out all changes. @throws {LacewingError} `file`, `disk_full`; then no file has changed, or it says which */
  async apply(changes: readonly FileChange[]): Promise<Done[]> {
    const folders: string[] = [];
    const staged: Staged[] = [];
    try {
      for (const change of changes.filter(({ before, after }) => before !== after)) {
        staged.push(await this.#stage(change, folders));
      }
      return (await Promise.all(changes.map((change) => {
        const one = staged.find((candidate) => candidate.change === change);
        return one === undefined ? [{ what: "unchanged" as const, path: this.pathOf(change.path) }] : this.#finish(one);
      }))).flat();
    } catch (error) {
      for (const { temporary } of staged) if (temporary !== null) await Deno.remove(temporary).catch(() => {});
      for (const folder of folders.reverse()) await Deno.remove(folder).catch(() => {});
      throw error;
    }
  }

  /** Writes the new text beside its place, and the backup. */
  async #stage(change: FileChange, folders: string[]): Promise<Staged> {
    const path = this.pathOf(change.path);
    await makeFolders(splitPath(path).folder, folders);
    const target = change.before === null ? path : await attempt(`read ${path}`, () => Deno.realPath(path));
    if (change.keepsBackup && change.before !== null) await write(`${path}${BACKUP_SUFFIX}`, change.before, target);
    if (change.after === null) return { change, target, temporary: null };
    const { folder, base } = splitPath(target);
    const temporary = `${folder}/${temporaryName(base, crypto.randomUUID())}`;
    await writeNew(temporary, change.after, change.before === null ? null : target);
    return { change, target, temporary };
  }

  async #finish({ change, target, temporary }: Staged): Promise<Done[]> {
    const path = this.pathOf(change.path);
    if (temporary !== null) await attempt(`write ${path}`, () => Deno.rename(temporary, target));
    else await attempt(`remove ${path}`, () => Deno.remove(target));
    const backup = await this.#settleBackup(path, change);
    const isEmptied = change.after === null && backup.length === 0;
    // An empty folder of a registry would hide _default from containerd.
    if (isEmptied && /\/certs\.d\/[^/]+$/.test(splitPath(path).folder)) {
      await Deno.remove(splitPath(path).folder).catch(() => {});
    }
    const what = change.before === null ? "created" : change.after === null ? "removed" : "changed";
    return [{ what, path }, ...backup];
  }

  /** A backup that the file equals again is of no more use. */
  async #settleBackup(path: string, { after, keepsBackup }: FileChange): Promise<Done[]> {
    const backup = `${path}${BACKUP_SUFFIX}`;
    if (keepsBackup) return [{ what: "kept", path: backup }];
    if (after === null || await lstat(backup) === null) return [];
    if (await Deno.readTextFile(backup).catch(() => null) === after) {
      await attempt(`remove ${backup}`, () => Deno.remove(backup));
    }
    return [];
  }
}

/** Makes what is missing, and remembers it: a setup that fails leaves nothing. */
async function makeFolders(folder: string, made: string[]): Promise<void> {
  if (folder === "/" || await lstat(folder) !== null) return;
  await makeFolders(splitPath(folder).folder, made);
  await attempt(`make folder ${folder}`, () => Deno.mkdir(folder));
  made.push(folder);
}

async function write(path: string, text: string, like: string): Promise<void> {
  const { folder, base } = splitPath(path);
  const temporary = `${folder}/${temporaryName(base, crypto.randomUUID())}`;
  await writeNew(temporary, text, like);
  await attempt(`write ${path}`, () => Deno.rename(temporary, path));
}

/** A new file with the rights and the owner of another one. */
async function writeNew(path: string, text: string, like: string | null): Promise<void> {
  await attempt(`write ${path}`, async () => {
    const facts = like === null ? null : await Deno.stat(like);
    const mode = (facts?.mode ?? NEW_FILE_MODE) & 0o7777;
    try {
      await Deno.writeTextFile(path, text, { createNew: true, mode });
      // The umask took its part of the mode.
      await Deno.chmod(path, mode);
      if (facts !== null && Deno.uid() === 0) await Deno.chown(path, facts.uid, facts.gid);
    } catch (error) {
      await Deno.remove(path).catch(() => {});
      throw error;
    }
  });
}

/** Other bytes would not come back as they were. @throws {LacewingError} `config_invalid` */
function textOf(bytes: Uint8Array, path: string): string {
  const wanted = `Cannot read ${path}: want text in UTF-8`;
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    if (!text.startsWith("\ufeff")) return text;
  } catch (cause) {
    throw new LacewingError("config_invalid", wanted, { cause });
  }
  throw new LacewingError("config_invalid", `${wanted} without a byte order mark`);
}

function isMissing(cause: unknown): boolean {
  return cause instanceof Deno.errors.NotFound || cause instanceof Deno.errors.NotADirectory;
}
