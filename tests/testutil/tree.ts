/** Folders with nasty names for tests of whole trees, and what stands in a folder. */
import { contentBytes } from "./content.ts";

/** Names that some server, link or shell gets wrong. */
export const NASTY_NAMES = [
  "<b>bold.txt",
  "a.txt",
  "amp&lt;.txt",
  "back\\slash.txt",
  "file with space.txt",
  "hash#tag.txt",
  `${"l".repeat(120)}.txt`,
  "percent%41.txt",
  "plus+plus.txt",
  "question?mark.txt",
  "quote\"and'apos.txt",
  "semi;colon:colon.txt",
  "ünïcödé-文件.txt",
];

/** Makes files that every server can read, all of one date; a path's last name is the file's. */
export async function makeTree(folder: string, files: Record<string, number>, date = "2024-03-05T06:07:08Z") {
  await Deno.mkdir(folder, { recursive: true });
  for (const [index, [path, size]] of Object.entries(files).entries()) {
    const file = `${folder}/${path}`;
    await Deno.mkdir(file.slice(0, file.lastIndexOf("/")), { recursive: true });
    await Deno.writeFile(file, contentBytes(index + 1, 0, size));
    await Deno.utime(file, new Date(date), new Date(date));
  }
  for await (const path of folders(folder)) await Deno.chmod(path, 0o755);
}

/** A tree with every nasty name as a file, and some as folders. */
export function nastyFiles(): Record<string, number> {
  const files = Object.fromEntries(NASTY_NAMES.map((name, index) => [name, index * 1000]));
  const below = NASTY_NAMES.filter((name) => name.length < 100).map((name) => [`dir of ${name}/in ${name}`, 10]);
  return { ...files, "big.bin": 2_000_003, "sub/deep/leaf.txt": 5, ...Object.fromEntries(below) };
}

/** Every file below a folder with its bytes in hexadecimal (or their count, for large ones), and every folder. */
export async function treeOf(folder: string, prefix = ""): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for await (const { name, isDirectory, isSymlink } of Deno.readDir(folder)) {
    const path = `${folder}/${name}`;
    if (isSymlink) found[prefix + name] = "symbolic link";
    else if (isDirectory) Object.assign(found, { [`${prefix}${name}/`]: "" }, await treeOf(path, `${prefix}${name}/`));
    else {
      const digest = await crypto.subtle.digest("SHA-256", await Deno.readFile(path));
      found[prefix + name] = new Uint8Array(digest).toHex();
    }
  }
  return Object.fromEntries(Object.entries(found).sort(([a], [b]) => a < b ? -1 : 1));
}

async function* folders(folder: string): AsyncGenerator<string> {
  yield folder;
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) yield* folders(`${folder}/${name}`);
  }
}
