/**
 * Reads `WWW-Authenticate`: one or several challenges, in one header or in
 * several joined by commas, values as tokens or quoted strings (RFC 9110
 * section 11.6.1). Pure. What cannot be read is left out, never guessed.
 */

export interface Challenge {
  /** Lower case: `bearer`, `basic`. */
  readonly scheme: string;
  /** Names in lower case; a name given twice keeps its first value. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** Characters of a header that are read; no registry's is near to that. */
const HEADER_LENGTH_MAX = 8192;
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
/** `name=value` or `name="quoted"`; blanks around `=` are tolerated as the RFC asks. */
const PARAMETER = new RegExp(`^(${TOKEN})[ \\t]*=[ \\t]*(?:"((?:[^"\\\\]|\\\\.)*)"|(${TOKEN}))`);
const SCHEME = new RegExp(`^(${TOKEN})(?=[ \\t,]|$)[ \\t]*`);
/** Token68 credentials, such as `Negotiate YII=`, that carry no parameters. */
const TOKEN68 = /^[A-Za-z0-9._~+/-]+=*(?=[ \t]*(?:,|$))/;

/** The challenges of a header in their order; none for null. */
export function parseChallenges(header: string | null): Challenge[] {
  const challenges: { scheme: string; parameters: Record<string, string> }[] = [];
  let rest = (header ?? "").slice(0, HEADER_LENGTH_MAX);
  while (rest !== "") {
    rest = rest.replace(/^[ \t,]+/, "");
    const parameter = PARAMETER.exec(rest);
    const current = challenges.at(-1);
    if (parameter !== null) {
      const [text, name = "", quoted, token = ""] = parameter;
      const key = name.toLowerCase();
      if (current !== undefined && !Object.hasOwn(current.parameters, key)) {
        current.parameters[key] = quoted === undefined ? token : quoted.replace(/\\(.)/g, "$1");
      }
      rest = rest.slice(text.length);
      continue;
    }
    const scheme = SCHEME.exec(rest);
    if (scheme === null) {
      rest = rest.replace(/^[^,]*/, "");
      continue;
    }
    challenges.push({ scheme: (scheme[1] ?? "").toLowerCase(), parameters: Object.create(null) });
    rest = rest.slice(scheme[0].length).replace(TOKEN68, "");
  }
  return challenges;
}
