/**
 * A log file that stays bounded: `core.log` and nine older ones of at most
 * 100 MB each (INTERFACE section 2). Lines are written at once and whole, by
 * append, so that client and daemon may share a file; a full disk loses lines, never the process.
 */
import { LacewingError } from "./errors.ts";

const FILE_LENGTH_MAX = 100 * 1024 * 1024;
const FILE_COUNT_MAX = 10;

export interface LogFile extends Disposable {
  /** Appends one line; its newline is added. */
  write(line: string): void;
}

/**
 * Opens a log file, making its folder.
 *
 * @throws {LacewingError} `file` if it cannot be written.
 */
export function openLogFile(
  path: string,
  { lengthMax = FILE_LENGTH_MAX, countMax = FILE_COUNT_MAX }: { lengthMax?: number; countMax?: number } = {},
): LogFile {
  let { file, length } = openAppending(path);
  let isClosed = false;
  return {
    write(line) {
      if (isClosed) return;
      const bytes = new TextEncoder().encode(line + "\n");
      try {
        if (length > 0 && length + bytes.length > lengthMax) {
          file.close();
          isClosed = true;
          rotate(path, countMax);
          ({ file, length } = openAppending(path));
          isClosed = false;
        }
        length += file.writeSync(bytes);
      } catch {
        // No line of a log is worth a download.
      }
    },
    [Symbol.dispose]() {
      if (!isClosed) file.close();
      isClosed = true;
    },
  };
}

function openAppending(path: string): { file: Deno.FsFile; length: number } {
  try {
    Deno.mkdirSync(path.slice(0, path.lastIndexOf("/")) || "/", { recursive: true });
    // 0640: records are redacted, and still tell who downloads what.
    const file = Deno.openSync(path, { append: true, create: true, mode: 0o640 });
    return { file, length: file.statSync().size };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new LacewingError("file", `Cannot open log file ${path}: ${reason}; give another folder with --logdir`, {
      cause,
    });
  }
}

/** `core.log` → `core.log.1` → … ; the oldest goes. */
function rotate(path: string, countMax: number): void {
  for (let number = countMax - 1; number > 0; number--) {
    const older = `${path}.${number}`;
    const newer = number === 1 ? path : `${path}.${number - 1}`;
    try {
      Deno.renameSync(newer, older);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
  if (countMax === 1) Deno.removeSync(path);
}
