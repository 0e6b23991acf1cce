/** Makes the contents that the benches move, and checks what arrived. */
import type { BenchFile, Workload } from "./contestant.ts";
import { contentBytes, fileDigest } from "../testutil/content.ts";
import { createHash } from "node:crypto";

const STEP = 4 * 1024 * 1024;

/** Writes files of these sizes into a new folder; all their bytes differ. */
export async function makeWorkload(folder: string, sizes: readonly number[]): Promise<Workload> {
  await Deno.mkdir(folder, { recursive: true });
  const files: BenchFile[] = [];
  for (const [index, size] of sizes.entries()) {
    const name = `f${index}`;
    const hash = createHash("sha256");
    using file = await Deno.create(`${folder}/${name}`);
    for (let offset = 0; offset < size; offset += STEP) {
      const bytes = contentBytes(1000 + index, offset, Math.min(STEP, size - offset));
      hash.update(bytes);
      for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
    }
    files.push({ name, size, digest: `sha256:${hash.digest("hex")}` });
  }
  return { folder, files, size: sizes.reduce((total, size) => total + size, 0) };
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
