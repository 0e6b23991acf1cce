/**
 * Checks certificates of authorities where they are configured: TLS libraries
 * pass over a file without any, and every origin is refused later for a reason
 * that names no file. Pure.
 */
import { X509Certificate } from "node:crypto";
import { LacewingError } from "./errors.ts";

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^]*?-----END CERTIFICATE-----/g;

/**
 * @param text of a PEM file
 * @param names the configuration's key and the file's path, for messages
 * @returns the text as it is
 * @throws {LacewingError} `config_invalid` for a text without a certificate, or with one that cannot be read
 */
export function checkedCertificates(text: string, { key, path }: { key: string; path: string }): string {
  const found = text.match(CERTIFICATE) ?? [];
  if (found.length === 0) {
    throw new LacewingError("config_invalid", `Cannot use ${key}: ${path} holds no certificate in PEM form`);
  }
  for (const [index, one] of found.entries()) {
    try {
      new X509Certificate(one);
    } catch (cause) {
      const text = `Cannot use ${key}: certificate ${index + 1} in ${path} cannot be read`;
      throw new LacewingError("config_invalid", text, { cause });
    }
  }
  return text;
}
