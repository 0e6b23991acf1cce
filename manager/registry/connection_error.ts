/**
 * Tells what went wrong below HTTP: maps the codes of `node:net`, `node:dns`
 * and `node:tls` to our error codes, the cause kept. Codes alone decide, never
 * messages.
 */
import { type ErrorCode, LacewingError } from "../../peer/core/errors.ts";

/** What failed before the other side could see a request, so that another address may be tried. */
const CONNECT_CODES: Readonly<Record<string, string>> = {
  ECONNREFUSED: "the connection was refused",
  EHOSTUNREACH: "the host cannot be reached",
  ENETUNREACH: "the network cannot be reached",
  EADDRNOTAVAIL: "this machine has no address of that family",
};
const NETWORK_CODES: Readonly<Record<string, string>> = {
  ...CONNECT_CODES,
  ENOTFOUND: "the name is not known",
  EAI_AGAIN: "the name server does not answer",
  ENODATA: "the name has no address",
  ECONNRESET: "the connection was reset",
  EPIPE: "the connection was closed",
  ETIMEDOUT: "the connection timed out",
};
/** OpenSSL's verification codes and those of `node:tls`. */
const TLS_CODE =
  /^(?:ERR_TLS_|ERR_SSL_|EPROTO$|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_MISMATCH|INVALID_|CRL_|ERROR_IN_)/;

/** Whether another address of the same name may do better. */
export function isConnectError(error: unknown): boolean {
  return (error instanceof LacewingError && error.code === "timeout") || Object.hasOwn(CONNECT_CODES, codeOf(error));
}

/**
 * The error of a failed connection as one of ours; one of ours stays as it is.
 *
 * @param tried beginning of the message: `Cannot read URL at ADDRESS`
 */
export function connectionError(error: unknown, tried: string): unknown {
  if (error instanceof LacewingError || error instanceof DOMException || !(error instanceof Error)) return error;
  const code = codeOf(error);
  const reason = Object.hasOwn(NETWORK_CODES, code) ? NETWORK_CODES[code] : error.message.slice(0, 300);
  const kind: ErrorCode = TLS_CODE.test(code) ? "tls" : "network";
  const hint = kind === "tls" ? "; a private authority is trusted once job.caCerts names its file" : "";
  return new LacewingError(kind, `${tried}: ${reason}${code === "" ? "" : ` (${code})`}${hint}`, { cause: error });
}

function codeOf(error: unknown): string {
  const code = error instanceof Error ? (error as Error & { code?: unknown }).code : undefined;
  return typeof code === "string" ? code : "";
}
