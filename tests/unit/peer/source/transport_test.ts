import { assert, assertEquals } from "@std/assert";
import { discard, reachError, type TransportAnswer } from "../../../../peer/source/transport.ts";

const ORIGIN = new URL("https://user:secret@origin.test/x?token=secret");

function failed(reason: string): Error {
  const cause = new Error(`error sending request for url (${ORIGIN}): client error (Connect): ${reason}`);
  return new TypeError("fetch failed", { cause });
}

for (
  const [reason, code] of [
    ["tcp connect error: Connection refused (os error 111)", "network"],
    ["dns error: failed to lookup address information: Name or service not known", "network"],
    ["connection closed before message completed", "network"],
    ["invalid peer certificate: UnknownIssuer", "tls"],
    ['invalid peer certificate: certificate not valid for name "a"', "tls"],
    ["received corrupt message of type InvalidContentType", "tls"],
    ["received fatal alert: HandshakeFailure", "tls"],
  ] as const
) {
  Deno.test(`reachError() takes "${reason.slice(0, 40)}" for ${code}, without the URL's secrets`, () => {
    const error = reachError(ORIGIN, failed(reason));
    assertEquals(error.code, code);
    assert(error.message.includes("origin.test:443") && error.message.includes(reason.slice(-20)), error.message);
    assert(!error.message.includes("secret"), error.message);
    assert(error.cause instanceof TypeError);
  });
}

for (const thrown of ["text", undefined, new Error(""), new Error("x".repeat(5000))]) {
  Deno.test(`reachError() takes ${String(thrown).slice(0, 20)} for network, in a bounded text`, () => {
    const error = reachError(ORIGIN, thrown);
    assertEquals(error.code, "network");
    assert(error.message.length < 500);
  });
}

for (
  const [length, isRead] of [["0", true], ["65536", true], ["65537", false], [null, false]] as const
) {
  Deno.test(`discard() ${isRead ? "reads" : "cancels"} a body of ${length ?? "unknown"} length`, async () => {
    const seen: string[] = [];
    const answer: TransportAnswer = {
      status: 302,
      headers: new Headers(length === null ? {} : { "content-length": length }),
      read: () => {
        seen.push("read");
        return Promise.resolve(seen.length > 2 ? null : new Uint8Array(1));
      },
      cancel: () => {
        seen.push("cancel");
        return Promise.resolve();
      },
    };
    await discard(answer);
    assertEquals(seen, isRead ? ["read", "read", "read", "cancel"] : ["cancel"]);
  });
}

Deno.test("discard() does not mind a body that breaks", async () => {
  let canceled = false;
  await discard({
    status: 500,
    headers: new Headers({ "content-length": "5" }),
    read: () => Promise.reject(new Error("broken")),
    cancel: () => {
      canceled = true;
      return Promise.resolve();
    },
  });
  assert(canceled);
});
