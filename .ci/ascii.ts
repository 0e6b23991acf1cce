/**
 * Makes the text of a program ASCII without changing what it does. A file with
 * one character beyond Latin-1 is held by V8 in two bytes a character, copied
 * and scanned so at every start: 41 ms for 1 KiB through a daemon with the
 * bundle as it was, 36 ms in ASCII, of which an empty program is 12 (Deno 2.9.6).
 */

/** `String.raw` shows the escape instead of the character. */
const RAW = /String\.raw\s*`[^`]*[\u0080-\uffff]/;
/** Any character beyond ASCII with the backslashes before it. */
const BEYOND = /(\\*)([\u0080-\uffff])/g;

/** The program in ASCII; as it was where an escape would change it. */
export function toAscii(program: string): string {
  if (RAW.test(program)) return program;
  return program.replace(BEYOND, (_, slashes: string, unit: string) => {
    // An odd one belongs to the character: `\é` is é, and `\\u00e9` would be something else.
    const kept = slashes.length % 2 === 0 ? slashes : slashes.slice(1);
    return `${kept}\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
