/**
 * A container image that really runs, made without a network: this machine's
 * static busybox as the first layer, invented bytes that do not compress in
 * the others. Its command prints one line.
 */
import { contentBytes } from "./content.ts";
import { imageOfFiles, type TestImage } from "./image.ts";

export interface RunnableImage {
  readonly image: TestImage;
  /** What its command prints. */
  readonly prints: string;
  /** Digests of all that a host pulls, sorted. */
  readonly content: readonly string[];
  /** Length of its config and layers together. */
  readonly blobBytes: number;
}

const BUSYBOX = "/bin/busybox";

/** @param sizes of the layers beside busybox, in bytes; another seed is another image */
export async function makeRunnableImage(sizes: readonly number[], seed = 1): Promise<RunnableImage> {
  const prints = `image ${seed} of ${sizes.length} layers runs`;
  const invented = sizes.map((size, index) => ({
    path: `data/${index}.bin`,
    content: contentBytes(seed * 1000 + index, 0, size),
  }));
  const files = [{ path: "bin/busybox", content: await Deno.readFile(BUSYBOX) }, ...invented];
  const image = imageOfFiles(files, ["/bin/busybox", "echo", prints]);
  return {
    image,
    prints,
    content: [...image.manifests.keys(), ...image.blobs.keys()].sort(),
    blobBytes: [...image.blobs.values()].reduce((sum, { bytes }) => sum + bytes.length, 0),
  };
}
