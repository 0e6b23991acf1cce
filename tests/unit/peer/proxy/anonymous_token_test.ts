import { assertEquals } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { anonymousHeaders, strangersHeaders } from "../../../../peer/proxy/anonymous_token.ts";
import type { Field } from "../../../../peer/proxy/http_message.ts";
import type { OriginAnswer, OriginRequest } from "../../../../peer/proxy/origin_client.ts";

const SIGNAL = new AbortController().signal;
const READ = {
  url: "https://registry.test/v2/app/blobs/sha256:1",
  headers: [["Authorization", "Bearer old"], ["X-Lab", "1"]] as Field[],
};
const SCOPED = 'Bearer realm="https://auth.test/token?account=x",service="registry",scope="repository:app:pull"';

type Scripted = LacewingError | { status: number; challenge?: string; body?: string };

/** Answers in order; keeps what was asked. */
function client(...answers: Scripted[]) {
  const asked: OriginRequest[] = [];
  return {
    asked,
    send: (request: OriginRequest): Promise<OriginAnswer> => {
      asked.push(request);
      const next = answers.shift()!;
      if (next instanceof LacewingError) return Promise.reject(next);
      const parts = [new TextEncoder().encode(next.body ?? "")];
      const fields: Field[] = next.challenge === undefined ? [] : [["WWW-Authenticate", next.challenge]];
      return Promise.resolve({
        head: { status: next.status, reason: "", minor: 1, fields },
        framing: { kind: "close" },
        read: () => Promise.resolve(parts.shift() ?? null),
        [Symbol.dispose]: () => {},
      });
    },
  };
}

for (const name of ["token", "access_token"]) {
  Deno.test(`the realm of the challenge is asked for a ${name} of its scope, without the client's credentials`, async () => {
    const made = client({ status: 401, challenge: SCOPED }, { status: 200, body: JSON.stringify({ [name]: "n.e-w" }) });
    assertEquals(await anonymousHeaders(made, READ, SIGNAL), [["X-Lab", "1"], ["Authorization", "Bearer n.e-w"]]);
    const [first, second] = made.asked;
    assertEquals(first!.fields.map(([field]) => field), ["X-Lab", "Range", "Accept-Encoding"]);
    assertEquals(
      second!.url.href,
      "https://auth.test/token?account=x&service=registry&scope=repository%3Aapp%3Apull",
    );
    assertEquals(second!.fields.map(([field]) => field), ["Accept", "Accept-Encoding"]);
  });
}

for (const status of [200, 206, 307]) {
  Deno.test(`an origin that answers a stranger with ${status} needs no token`, async () => {
    assertEquals(await anonymousHeaders(client({ status }), READ, SIGNAL), [["X-Lab", "1"]]);
  });
}

const token = (value: unknown): Scripted => ({ status: 200, body: JSON.stringify(value) });
const CHALLENGED: Scripted = { status: 401, challenge: SCOPED };

for (
  const [what, answers] of [
    ["no credentials are wanted but the origin refuses", [{ status: 403 }]],
    ["the content is gone", [{ status: 404 }]],
    ["the origin is away", [new LacewingError("network", "away")]],
    ["there is no challenge", [{ status: 401 }]],
    ["a name and password are wanted", [{ status: 401, challenge: 'Basic realm="x"' }]],
    ["the realm is no URL", [{ status: 401, challenge: 'Bearer realm="auth"' }]],
    ["the realm is a file", [{ status: 401, challenge: 'Bearer realm="file:///etc/passwd"' }]],
    ["the realm has no TLS and the registry has", [{ status: 401, challenge: 'Bearer realm="http://auth.test/"' }]],
    ["the realm refuses strangers", [CHALLENGED, { status: 401 }]],
    ["the realm is away", [CHALLENGED, new LacewingError("timeout", "silent")]],
    ["the realm's answer is no JSON", [CHALLENGED, { status: 200, body: "<html>" }]],
    ["the realm's answer is null", [CHALLENGED, token(null)]],
    ["the token is no text", [CHALLENGED, token({ token: 7 })]],
    ["the token breaks out of its header", [CHALLENGED, token({ token: "a\r\nX: y" })]],
    ["the token is overlong", [CHALLENGED, token({ token: "a".repeat(20_000) })]],
    ["the realm's answer is endless", [CHALLENGED, { status: 200, body: `"${"a".repeat(300_000)}"` }]],
  ] as [string, Scripted[]][]
) {
  Deno.test(`where ${what}, strangers may read nothing`, async () => {
    assertEquals(await anonymousHeaders(client(...answers), READ, SIGNAL), null);
  });
}

Deno.test("a client without credentials is a stranger already", async () => {
  const made = client();
  assertEquals(await anonymousHeaders(made, { ...READ, headers: [["X-Lab", "1"]] }, SIGNAL), null);
  assertEquals(made.asked, []);
});

Deno.test("a client without credentials may not have known that a token is wanted", async () => {
  const made = client({ status: 401, challenge: SCOPED }, token({ token: "new" }));
  const headers: Field[] = [["X-Lab", "1"]];
  assertEquals(await strangersHeaders(made, { ...READ, headers }, SIGNAL), [...headers, [
    "Authorization",
    "Bearer new",
  ]]);
});
