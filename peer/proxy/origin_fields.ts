/**
 * Decides which of a client's headers go to an origin. Pure. Two cases: a
 * request that passes through keeps all that is not of its connection; a
 * content that the swarm fetches takes along only what says who asks, because
 * the daemon asks in its own words.
 */
import { endToEnd, type Field } from "./http_message.ts";
import { OVERRIDES } from "./registry_target.ts";

/** Says how, not who: the same content is fetched whatever stands in them. */
const NOT_WHO = new Set([
  "cache-control",
  "content-length",
  "content-type",
  "date",
  "dnt",
  "docker-distribution-api-version",
  "expect",
  "forwarded",
  "from",
  "host",
  "max-forwards",
  "origin",
  "pragma",
  "priority",
  "range",
  "referer",
  "traceparent",
  "tracestate",
  "upgrade-insecure-requests",
  "user-agent",
  "via",
]);
const NOT_WHO_PREFIX = /^(?:accept|if-|sec-|x-forwarded-)/;

/** The headers of a client with which the daemon fetches a content for it. */
export function whoAsks(fields: readonly Field[]): Field[] {
  return endToEnd(fields, OVERRIDES).filter(([name]) => {
    const key = name.toLowerCase();
    return !NOT_WHO.has(key) && !NOT_WHO_PREFIX.test(key);
  });
}

/** The headers of a request that passes through; its framing and Host are the sender's own. */
export function passedOn(fields: readonly Field[], { isIdentity }: { isIdentity: boolean }): Field[] {
  const own = ["host", "content-length", "expect", ...OVERRIDES];
  if (!isIdentity) return endToEnd(fields, own);
  // A compressed blob or manifest has another digest than the one promised.
  return [...endToEnd(fields, [...own, "accept-encoding"]), ["Accept-Encoding", "identity"]];
}
