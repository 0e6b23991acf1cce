/**
 * Remembers what origins call contents that are no blobs. Pieces do not tell:
 * a page that is shared by a rule would be given as a stream of bytes. Learned
 * from the answers to `HEAD`, by which `Access` asks for the client's rights.
 */
import { type Field, valueOf } from "./http_message.ts";

const REMEMBERED_MAX = 10_000;
const LENGTH_MAX = 256;

export class ContentTypes {
  /** By URL, the oldest first. */
  readonly #types = new Map<string, string>();

  /** The origin's answer to `HEAD`; one that is no content says nothing. */
  learn(url: URL, { status, fields }: { readonly status: number; readonly fields: readonly Field[] }): void {
    if (status !== 200) return;
    this.#types.delete(url.href);
    const type = valueOf(fields, "content-type");
    if (type === null || type === "" || type.length > LENGTH_MAX) return;
    this.#types.set(url.href, type);
    for (const oldest of this.#types.keys()) {
      if (this.#types.size <= REMEMBERED_MAX) break;
      this.#types.delete(oldest);
    }
  }

  /** @returns null where the origin was not asked, or did not say */
  of(url: URL): string | null {
    return this.#types.get(url.href) ?? null;
  }
}
