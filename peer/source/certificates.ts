/** Reads the certificates of authorities that a configuration names. */
import { checkedCertificates } from "../core/certificates.ts";
import { LacewingError } from "../core/errors.ts";

/**
 * @param key the configuration's, for messages
 * @returns PEM texts, one for each path
 * @throws {LacewingError} `config_invalid` for a file that cannot be read or holds no certificate
 */
export async function readCertificates(paths: readonly string[], key: string): Promise<string[]> {
  return await Promise.all(paths.map(async (path) => {
    const text = await Deno.readTextFile(path).catch((cause) => {
      throw new LacewingError("config_invalid", `Cannot use ${key}: cannot read ${path}`, { cause });
    });
    return checkedCertificates(text, { key, path });
  }));
}
