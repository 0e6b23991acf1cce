/**
 * Makes tokens: 256 random bits in text, and the admin's first one, which lies
 * in a file of the work home that only its owner can read.
 */
import { LacewingError } from "../../peer/core/errors.ts";

/** The file of the generated admin token, in the work home. */
export const ADMIN_TOKEN_FILE = "admin_token";

/** Characters of an admin token that somebody chose. */
const ADMIN_TOKEN_LENGTH_MIN = 16;

/** @param prefix tells what a token found somewhere is for */
export function newToken(prefix: "lwa" | "lwp"): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return `${prefix}_${
    btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")
  }`;
}

/**
 * The admin token: from the environment, else from its file, else a new one
 * that is written there.
 *
 * @returns the token, and the file it was written to just now or null
 * @throws {LacewingError} `config_invalid` when the given one is too short, `file`
 */
export function adminToken(
  workHome: string,
  fromEnvironment: string | undefined,
): { token: string; made: string | null } {
  if (fromEnvironment !== undefined) {
    if (fromEnvironment.length >= ADMIN_TOKEN_LENGTH_MIN) return { token: fromEnvironment, made: null };
    throw new LacewingError(
      "config_invalid",
      `Cannot use LACEWING_ADMIN_TOKEN: want at least ${ADMIN_TOKEN_LENGTH_MIN} characters`,
    );
  }
  const path = `${workHome}/${ADMIN_TOKEN_FILE}`;
  try {
    const kept = readIfThere(path);
    if (kept !== null && kept.length >= ADMIN_TOKEN_LENGTH_MIN) return { token: kept, made: null };
    const token = newToken("lwa");
    Deno.writeTextFileSync(path, token + "\n", { mode: 0o600 });
    Deno.chmodSync(path, 0o600);
    return { token, made: path };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new LacewingError("file", `Cannot keep the admin token in ${path}: ${reason}`, { cause });
  }
}

function readIfThere(path: string): string | null {
  try {
    return Deno.readTextFileSync(path).trim();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}
