/**
 * Blocks of lines that setup owns inside a file that may be somebody else's:
 * from a line that says whose they are to a line that ends them. All outside
 * stays byte for byte. Pure.
 */

/** `# >>> lacewing setup: NAME for USER, USER (advice)`; a block without users is everybody's. */
const HEAD = /^# >>> lacewing setup: (\S+)(?: for ([a-z]+(?:, [a-z]+)*))?(?: .*)?\n/gm;
const TAIL = "# <<< lacewing setup";
const ADVICE = " (take back with lacewing setup --remove)";

export interface Block {
  /** One word without spaces. */
  readonly name: string;
  /** Lines without the last newline. */
  readonly body: string;
  /** Lower-case words: for whom it stands where several share a file. Absent: for whoever reads it. */
  readonly users?: readonly string[];
}

interface Place extends Block {
  readonly start: number;
  readonly end: number;
}

/** Every block of the text, in its order. */
export function blocksOf(text: string): Block[] {
  return placesOf(text).map(({ name, body, users }) => ({ name, body, ...(users === undefined ? {} : { users }) }));
}

/** The text without its blocks. */
export function outsideOf(text: string): string {
  return placesOf(text).reverse().reduce((rest, { start, end }) => rest.slice(0, start) + rest.slice(end), text);
}

/**
 * The text with the block: in the place of the one of that name, else before
 * the first line that `before` matches outside of all blocks, else at the end.
 */
export function putBlock(text: string, block: Block, before: RegExp | null = null): string {
  const users = block.users === undefined ? "" : ` for ${block.users.join(", ")}`;
  const rendered = `# >>> lacewing setup: ${block.name}${users}${ADVICE}\n${block.body}\n${TAIL}\n`;
  const places = placesOf(text);
  const own = places.find(({ name }) => name === block.name);
  if (own !== undefined) return text.slice(0, own.start) + rendered + text.slice(own.end);
  const at = before === null ? -1 : lineOutside(text, places, before);
  if (at >= 0) return text.slice(0, at) + rendered + text.slice(at);
  const head = text === "" || text.endsWith("\n") ? text : `${text}\n`;
  return head + rendered;
}

/** The text without the blocks that are asked for. */
export function dropBlocks(text: string, isDropped: (name: string) => boolean = () => true): string {
  return placesOf(text).filter(({ name }) => isDropped(name)).reverse()
    .reduce((rest, { start, end }) => rest.slice(0, start) + rest.slice(end), text);
}

function placesOf(text: string): Place[] {
  const places: Place[] = [];
  for (const match of text.matchAll(HEAD)) {
    const bodyAt = match.index + match[0].length;
    const end = /^# <<< lacewing setup[^\n]*(?:\n|$)/m.exec(text.slice(bodyAt));
    if (end === null) continue;
    const body = text.slice(bodyAt, bodyAt + end.index).replace(/\n$/, "");
    const users = match[2]?.split(", ");
    const block = { name: match[1]!, body, ...(users === undefined ? {} : { users }) };
    places.push({ ...block, start: match.index, end: bodyAt + end.index + end[0].length });
  }
  return places;
}

function lineOutside(text: string, places: readonly Place[], pattern: RegExp): number {
  let at = 0;
  for (const line of text.split("\n")) {
    const isOwn = places.some(({ start, end }) => at >= start && at < end);
    if (!isOwn && pattern.test(line)) return at;
    at += line.length + 1;
  }
  return -1;
}
