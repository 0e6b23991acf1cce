/**
 * Ways of taking a piece's SHA-256 while it arrives: on the main thread, or
 * in a worker that gets a copy of the bytes.
 */
import { createHash } from "node:crypto";

export interface Digester extends Disposable {
  readonly update: (bytes: Uint8Array<ArrayBuffer>) => void;
  /** @returns hex of what came since the last one */
  readonly finish: () => string | Promise<string>;
}

/** `none` and `after` are the caller's affair: whether, and when, it gives the bytes. */
export function digester(way: "none" | "main" | "worker" | "after"): Digester {
  if (way === "worker") return inWorker();
  let hash = createHash("sha256");
  return {
    update: (bytes) => void hash.update(bytes),
    finish: () => {
      const hex = hash.digest("hex");
      hash = createHash("sha256");
      return hex;
    },
    [Symbol.dispose]: () => {},
  };
}

const WORKER = `import { createHash } from "node:crypto";
let hash = createHash("sha256");
self.onmessage = ({ data }) => {
  if (data !== null) return hash.update(data);
  self.postMessage(hash.digest("hex"));
  hash = createHash("sha256");
};`;

function inWorker(): Digester {
  const worker = new Worker(`data:text/javascript,${encodeURIComponent(WORKER)}`, { type: "module" });
  return {
    update: (bytes) => {
      const copy = bytes.slice();
      worker.postMessage(copy, [copy.buffer]);
    },
    finish: () => {
      const { promise, resolve } = Promise.withResolvers<string>();
      worker.onmessage = ({ data }) => resolve(data);
      worker.postMessage(null);
      return promise;
    },
    [Symbol.dispose]: () => worker.terminate(),
  };
}
