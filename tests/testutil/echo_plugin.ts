/**
 * A source plug-in as a user writes one: `echo://TEXT?times=N` is a content
 * that holds the text N times. Copied as `echo.ts` into a plug-in folder, where
 * nothing of this project can be imported.
 */
interface Request {
  readonly url: string;
  readonly range: { readonly offset: number; readonly length: number } | null;
  readonly expect?: { readonly etag?: string };
}

/** What Lacewing calls once. */
export function createSource() {
  return {
    open: ({ url, range, expect }: Request) => {
      const { hostname, searchParams } = new URL(url);
      const text = decodeURIComponent(hostname);
      if (text === "missing") return Promise.reject(failure("source_not_found", "there is no echo"));
      if (text === "broken") return Promise.reject(new Error("the wall is gone"));
      const bytes = new TextEncoder().encode(text.repeat(Number(searchParams.get("times") ?? 1)));
      const etag = `"${text}-${bytes.length}"`;
      if (expect?.etag !== undefined && expect.etag !== etag) {
        return Promise.reject(failure("content_changed", "another echo"));
      }
      const offset = range?.offset ?? 0;
      const part = range === null ? bytes : bytes.subarray(offset, offset + range.length);
      let rest: Uint8Array | null = part;
      return Promise.resolve({
        contentLength: bytes.length,
        ranges: true,
        version: { etag },
        offset,
        length: part.length,
        read: () => {
          const next = rest?.length === 0 ? null : rest;
          rest = null;
          return Promise.resolve(next);
        },
      });
    },
  };
}

/** The code tells Lacewing what went wrong; without one it is a failure of the origin. */
function failure(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}
