/**
 * Checks that every message schema is put to: a good message passes whole, and
 * each of its fields, taken away or of a wrong kind, is refused by name.
 */
import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import type { z } from "zod";
import { LacewingError } from "../../../../../peer/core/errors.ts";
import { decodeMessage } from "../../../../../peer/core/wire/scheduler.ts";

export type Message = Readonly<Record<string, unknown>>;

/** A good message with every field set, and the names of the fields that may be left out. */
export interface GoodRow {
  readonly message: Message;
  readonly optional?: readonly string[];
}

/** A message that must be refused: what is wrong, the message, the path that the error names. */
export type BadRow = readonly [name: string, message: Message, path: string];

/** No field of any message is a negative fraction. */
const WRONG_KIND = -0.5;

export function testGoodRows(schemaName: string, schema: z.ZodType, rows: readonly GoodRow[]): void {
  for (const { message, optional = [] } of rows) {
    const name = `${schemaName} ${String(message.type)}`;
    Deno.test(`${name} is read whole`, () => {
      assertEquals(decodeMessage(schema, JSON.stringify(message)), message);
    });
    Deno.test(`${name} drops fields that it does not know`, () => {
      assertEquals(decodeMessage(schema, JSON.stringify({ ...message, of_a_later_version: 1 })), message);
    });
    for (const field of Object.keys(message)) {
      const { [field]: _, ...rest } = message;
      Deno.test(`${name} ${optional.includes(field) ? "may be" : "is not"} without ${field}`, () => {
        if (optional.includes(field)) decodeMessage(schema, JSON.stringify(rest));
        else assertRefused(schema, rest, field);
      });
      Deno.test(`${name} refuses a ${field} of a wrong kind`, () => {
        assertRefused(schema, { ...message, [field]: WRONG_KIND }, field);
      });
    }
  }
}

export function testBadRows(schemaName: string, schema: z.ZodType, rows: readonly BadRow[]): void {
  for (const [name, message, path] of rows) {
    Deno.test(`${schemaName} refuses ${name}, naming ${path}`, () => assertRefused(schema, message, path));
  }
}

function assertRefused(schema: z.ZodType, message: Message, path: string): void {
  const error = assertThrows(() => decodeMessage(schema, JSON.stringify(message)), LacewingError);
  assertEquals(error.code, "protocol");
  assertStringIncludes(error.message, `Cannot read message: ${path}`);
}
