/** Reads TOML that others wrote; wrong text is an error that names the file and the line. */
import { parse, TomlError } from "smol-toml";
import { LacewingError } from "../../peer/core/errors.ts";

export type Table = Readonly<Record<string, unknown>>;

/** @throws {LacewingError} `config_invalid` for text that is no TOML */
export function readToml(text: string, path: string): Table {
  try {
    return parse(text);
  } catch (cause) {
    if (!(cause instanceof TomlError)) throw cause;
    // The first line says what; the others show the file's text, where secrets may stand.
    const reason = cause.message.split("\n")[0]?.replace(/^Invalid TOML document: /, "");
    throw new LacewingError("config_invalid", `Cannot read ${path}: not TOML: line ${cause.line}: ${reason}`, {
      cause,
    });
  }
}

/** The table at a path of keys; an empty one where there is none. */
export function tableAt(table: Table, ...keys: readonly string[]): Table {
  let current: unknown = table;
  for (const key of keys) current = isTable(current) ? current[key] : undefined;
  return isTable(current) ? current : {};
}

/** The tables of a list; none where there is no list. */
export function tablesIn(value: unknown): Table[] {
  return Array.isArray(value) ? value.filter(isTable) : [];
}

/** The text at a key, or null. */
export function textIn(table: Table, key: string): string | null {
  const value = table[key];
  return typeof value === "string" ? value : null;
}

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}
