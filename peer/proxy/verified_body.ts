/**
 * Checks a body against the digest that its URL promises while it passes, and
 * keeps its last bytes back until the digest was found right: who gets wrong
 * bytes shall see a cut connection and not an end.
 */
import { type Digest, formatDigest, startDigest } from "../core/digest.ts";
import { LacewingError } from "../core/errors.ts";
import type { BodyReader } from "./http_reader.ts";

/**
 * @param length bytes of the body, or null when its end is not known before
 * @returns a body whose last `read` before the end throws `digest_mismatch` if the bytes are wrong
 */
export function verifiedBody(
  body: BodyReader,
  { digest, length }: { digest: Digest; length: number | null },
): BodyReader {
  const hash = startDigest(digest.algorithm);
  let received = 0;
  let isOver = false;
  let held: Uint8Array | null = null;
  const check = () => {
    isOver = true;
    const found = hash.digest("hex");
    if (found === digest.hex) return;
    throw new LacewingError(
      "digest_mismatch",
      `Cannot pass on the content: digest is ${digest.algorithm}:${found}, expected ${formatDigest(digest)}`,
    );
  };
  const next = async (): Promise<Uint8Array | null> => {
    const bytes = await body.read();
    if (bytes === null) {
      if (!isOver) check();
      return null;
    }
    hash.update(bytes);
    received += bytes.length;
    if (length !== null && received === length) check();
    return bytes;
  };
  if (length !== null) return { read: next };
  return {
    read: async () => {
      held ??= (await next())?.slice() ?? null;
      if (held === null) return null;
      const out = held;
      held = (await next())?.slice() ?? null;
      return out;
    },
  };
}
