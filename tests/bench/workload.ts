/** Makes the contents that the benches move, and checks what arrived. */
import type { BenchFile, Workload } from "./contestant.ts";
import { contentBytes, fileDigest } from "../testutil/content.ts";
import { createHash } from "node:crypto";

const STEP = 4 * 1024 * 1024;

/** Seed of the warm-up's bytes; the files count from the next one. */
const SEED = 1000;

/**
 * Writes files of these sizes into a new folder; all their bytes differ.
 *
 * @param warmUpSize bytes of the file beside them; 0: none
 */
export async function makeWorkload(
  folder: string,
  { sizes, warmUpSize }: { sizes: readonly number[]; warmUpSize: number },
): Promise<Workload> {
  await Deno.mkdir(folder, { recursive: true });
  const files: BenchFile[] = [];
  for (const [index, size] of sizes.entries()) {
    files.push(await makeFile(folder, `f${index}`, { size, seed: SEED + 1 + index }));
  }
  const warmUp = warmUpSize === 0 ? null : await makeFile(folder, "warm-up", { size: warmUpSize, seed: SEED });
  return { folder, files, warmUp, size: sizes.reduce((total, size) => total + size, 0) };
}

async function makeFile(
  folder: string,
  name: string,
  { size, seed }: { size: number; seed: number },
): Promise<BenchFile> {
  const hash = createHash("sha256");
  using file = await Deno.create(`${folder}/${name}`);
  for (let offset = 0; offset < size; offset += STEP) {
    const bytes = contentBytes(seed, offset, Math.min(STEP, size - offset));
    hash.update(bytes);
    for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
  }
  return { name, size, digest: `sha256:${hash.digest("hex")}` };
}

/** @returns a sentence for each file of a host that is not what the origin has */
export async function checkHosts(
  { files }: Workload,
  hosts: readonly { host: string; paths: readonly string[] }[],
): Promise<string[]> {
  const wrong: string[] = [];
  for (const { host, paths } of hosts) {
    for (const [index, { name, digest }] of files.entries()) {
      const path = paths[index];
      const found = path === undefined ? "nothing" : await fileDigest(path).catch(String);
      if (found !== digest) wrong.push(`${host}: ${name} is ${found}, expected ${digest}`);
    }
  }
  return wrong;
}
