/** All files below a folder, for tests that look into every one. */
export function* walkSync(folder: string): Generator<string> {
  for (const { name, isDirectory, isFile } of Deno.readDirSync(folder)) {
    if (isDirectory) yield* walkSync(`${folder}/${name}`);
    if (isFile) yield `${folder}/${name}`;
  }
}
