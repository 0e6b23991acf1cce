/**
 * Remembers over restarts which contents origins give to everyone, so that
 * what is here can be served while its origin is away. A file that grows by a
 * line for each fact, `MILLISECONDS KEY`, written at once; 0 takes a fact back.
 *
 * Keeps: keys only, which are digests; nothing of clients with credentials.
 * A file that is damaged or cannot be written only makes it forget.
 */
import { type Logger, silentLogger } from "../core/log.ts";

export interface PublicRecord {
  /** Whether everyone was given it within the last day. */
  isPublic(key: string): boolean;
  /** An origin gave it to somebody without credentials, or refused to. */
  note(key: string, isPublic: boolean): void;
}

/** How long a public content stays public while its origin cannot be asked. */
export const PUBLIC_MS = 24 * 3_600_000;
/** A fact is written again after this time: a restart makes it so much older at most. */
const RENEW_MS = 3_600_000;
const REMEMBERED_MAX = 10_000;
/** 80 bytes each. */
const LINES_MAX = 2 * REMEMBERED_MAX;
const LINE = /^(\d{1,15}) ([0-9a-f]{64})$/;

/** @param now wall-clock milliseconds */
export function openPublicRecord(
  path: string,
  { now = Date.now, log = silentLogger }: { now?: () => number; log?: Logger } = {},
): PublicRecord {
  return new FileRecord(path, now, log);
}

class FileRecord implements PublicRecord {
  /** When it was last written, oldest first. */
  readonly #atMs = new Map<string, number>();
  #lineCount = 0;
  #hasFailed = false;

  constructor(private readonly path: string, private readonly now: () => number, private readonly log: Logger) {
    this.#read();
  }

  isPublic(key: string): boolean {
    return this.#isWithin(key, PUBLIC_MS);
  }

  note(key: string, isPublic: boolean): void {
    if (isPublic ? this.#isWithin(key, RENEW_MS) : !this.#atMs.has(key)) return;
    this.#atMs.delete(key);
    if (isPublic) this.#atMs.set(key, this.now());
    for (const oldest of this.#atMs.keys()) {
      if (this.#atMs.size <= REMEMBERED_MAX) break;
      this.#atMs.delete(oldest);
    }
    this.#write(() => {
      if (this.#lineCount >= LINES_MAX) return this.#rewrite();
      this.#lineCount += 1;
      const line = lineOf(isPublic ? this.now() : 0, key);
      Deno.writeTextFileSync(this.path, line, { append: true, mode: 0o600 });
    });
  }

  #isWithin(key: string, ms: number): boolean {
    const ageMs = this.now() - (this.#atMs.get(key) ?? -Infinity);
    // A clock that was set back makes no fact last longer.
    return ageMs >= 0 && ageMs < ms;
  }

  #read(): void {
    this.#write(() => {
      let text: string;
      try {
        text = Deno.readTextFileSync(this.path);
      } catch (error) {
        if (error instanceof Deno.errors.NotFound) return;
        throw error;
      }
      for (const line of text.split("\n")) {
        const [, atMs = "0", key = ""] = LINE.exec(line) ?? [];
        this.#atMs.delete(key);
        if (Number(atMs) > 0) this.#atMs.set(key, Number(atMs));
      }
      for (const key of [...this.#atMs.keys()]) if (!this.isPublic(key)) this.#atMs.delete(key);
      this.#rewrite();
    });
  }

  #rewrite(): void {
    const text = [...this.#atMs].map(([key, atMs]) => lineOf(atMs, key)).join("");
    Deno.writeTextFileSync(`${this.path}.new`, text, { mode: 0o600 });
    Deno.renameSync(`${this.path}.new`, this.path);
    this.#lineCount = this.#atMs.size;
  }

  #write(act: () => void): void {
    try {
      act();
    } catch (error) {
      if (!this.#hasFailed) this.log.warn("cannot remember what is public", { path: this.path, error });
      this.#hasFailed = true;
    }
  }
}

function lineOf(atMs: number, key: string): string {
  return `${Math.floor(atMs)} ${key}\n`;
}
