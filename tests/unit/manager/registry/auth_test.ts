import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import type { Clock } from "../../../../peer/core/clock.ts";
import { type AuthRequest, RegistryAuth } from "../../../../manager/registry/auth.ts";
import type { GuardedFetch, GuardedRequest } from "../../../../manager/registry/guarded_fetch.ts";

const ORIGIN = "https://registry.example.com";
const REALM = "https://auth.example.com/token";
const CHALLENGE = `Bearer realm="${REALM}",service="reg",scope="repository:lab/app:pull"`;
const ANONYMOUS: AuthRequest = { origin: ORIGIN, name: "lab/app" };
const USER: AuthRequest = { ...ANONYMOUS, username: "u", password: "p:ä" };
const BASIC = `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode("u:p:ä")))}`;
const signal = new AbortController().signal;

interface Asked extends GuardedRequest {
  readonly url: string;
}

/** A token server of one line, and a clock that stands. */
function setUp(answer: (asked: Asked, count: number) => { status?: number; body?: unknown }) {
  const asked: Asked[] = [];
  const fetch: GuardedFetch = (url, init) => {
    asked.push({ ...init, url });
    const { status = 200, body = { token: `t${asked.length}`, expires_in: 300 } } = answer(
      { ...init, url },
      asked.length,
    );
    const bytes = new TextEncoder().encode(typeof body === "string" ? body : JSON.stringify(body));
    return Promise.resolve({ status, headers: new Headers(), bytes });
  };
  const clock: Clock & { now: number } = {
    now: 1_000_000,
    nowMs: () => clock.now,
    sleep: () => Promise.resolve(),
  };
  return { auth: new RegistryAuth(fetch, clock), asked, clock };
}

Deno.test("authorize() gets an anonymous token with the challenge's service and scope", async () => {
  const { auth, asked } = setUp(() => ({}));
  assertEquals(await auth.authorize(CHALLENGE, ANONYMOUS, { signal }), "Bearer t1");
  assertEquals(asked[0]?.url, `${REALM}?service=reg&scope=repository%3Alab%2Fapp%3Apull`);
  assertEquals(asked[0]?.headers.authorization, undefined);
});

Deno.test("authorize() sends username and password to the realm as Basic in UTF-8", async () => {
  const { auth, asked } = setUp(() => ({}));
  await auth.authorize(CHALLENGE, USER, { signal });
  assertEquals(asked[0]?.headers.authorization, BASIC);
  assertEquals(new URL(asked[0]?.url ?? "").searchParams.get("account"), "u");
});

Deno.test("authorize() asks for pull on the repository when the challenge names no scope, and keeps the realm's query", async () => {
  const { auth, asked } = setUp(() => ({}));
  await auth.authorize(`Bearer realm="${REALM}?a=1"`, ANONYMOUS, { signal });
  assertEquals(asked[0]?.url, `${REALM}?a=1&scope=repository%3Alab%2Fapp%3Apull`);
});

for (const status of [404, 405]) {
  Deno.test(`authorize() uses the OAuth2 form when GET answers ${status}`, async () => {
    const { auth, asked } = setUp(({ method }) => method === "GET" ? { status } : { body: { access_token: "form" } });
    assertEquals(await auth.authorize(CHALLENGE, USER, { signal }), "Bearer form");
    const form = new URLSearchParams(asked[1]?.body);
    assertEquals(asked[1]?.url, REALM);
    assertEquals(Object.fromEntries(form), {
      grant_type: "password",
      service: "reg",
      scope: "repository:lab/app:pull",
      client_id: "lacewing",
      username: "u",
      password: "p:ä",
    });
  });
}

Deno.test("authorize() keeps a token until shortly before it expires", async () => {
  const { auth, asked, clock } = setUp(() => ({}));
  await auth.authorize(CHALLENGE, USER, { signal });
  clock.now += 289_000;
  assertEquals(await auth.authorize(CHALLENGE, USER, { signal }), "Bearer t1");
  clock.now += 2_000;
  assertEquals(await auth.authorize(CHALLENGE, USER, { signal }), "Bearer t2");
  assertEquals(asked.length, 2);
});

Deno.test("authorize() takes 60 s for a token without expires_in, and half the life of a short one", async () => {
  const { auth, clock } = setUp((_, count) => ({ body: { token: `t${count}`, expires_in: count === 2 ? 8 : null } }));
  await auth.authorize(CHALLENGE, USER, { signal });
  clock.now += 49_000;
  assertEquals(await auth.authorize(CHALLENGE, USER, { signal }), "Bearer t1");
  clock.now += 2_000;
  assertEquals(await auth.authorize(CHALLENGE, USER, { signal }), "Bearer t2");
  clock.now += 3_900;
  assertEquals(await auth.authorize(CHALLENGE, USER, { signal }), "Bearer t2");
  clock.now += 200;
  assertEquals(await auth.authorize(CHALLENGE, USER, { signal }), "Bearer t3");
});

Deno.test("authorize() never gives one user's token to another user, password, repository or realm", async () => {
  const { auth, asked } = setUp(() => ({}));
  const other = CHALLENGE.replace("lab/app", "lab/other");
  await auth.authorize(CHALLENGE, USER, { signal });
  await auth.authorize(CHALLENGE, ANONYMOUS, { signal });
  await auth.authorize(CHALLENGE, { ...USER, password: "q" }, { signal });
  await auth.authorize(other, USER, { signal });
  await auth.authorize(CHALLENGE.replace("auth.", "other."), USER, { signal });
  assertEquals(asked.length, 5);
});

Deno.test("authorize() with fresh asks again, but not for a token that is seconds old", async () => {
  const { auth, asked, clock } = setUp(() => ({}));
  await auth.authorize(CHALLENGE, USER, { signal });
  assertEquals(await auth.authorize(CHALLENGE, USER, { signal, fresh: true }), "Bearer t1");
  clock.now += 6_000;
  assertEquals(await auth.authorize(CHALLENGE, USER, { signal, fresh: true }), "Bearer t2");
  assertEquals(asked.length, 2);
});

Deno.test("authorize() answers Basic without asking anyone", async () => {
  const { auth, asked } = setUp(() => ({}));
  assertEquals(await auth.authorize(`Basic realm="x"`, USER, { signal }), BASIC);
  assertEquals(asked.length, 0);
});

Deno.test("authorize() prefers Bearer to Basic", async () => {
  const { auth } = setUp(() => ({}));
  assertEquals(await auth.authorize(`Basic realm="x", ${CHALLENGE}`, USER, { signal }), "Bearer t1");
});

interface BadRow {
  why: string;
  code: string;
  says: string;
  header?: string | null;
  request?: AuthRequest;
  status?: number;
  body?: unknown;
}

const BAD: BadRow[] = [
  { why: "no challenge", header: null, code: "source_refused", says: "none" },
  { why: "an unknown scheme", header: "Negotiate", code: "source_refused", says: "negotiate" },
  { why: "Bearer without a realm", header: "Bearer service=x", code: "source_refused", says: "bearer" },
  { why: "Basic without credentials", header: "Basic", code: "source_refused", says: "none were given" },
  { why: "a realm that is no URL", header: "Bearer realm=x", code: "protocol", says: "realm" },
  { why: "a realm of another scheme", header: `Bearer realm="file:///etc"`, code: "protocol", says: "realm" },
  { why: "a realm with credentials", header: `Bearer realm="https://a:b@h/"`, code: "protocol", says: "realm" },
  { why: "a clear-text realm of an https registry", header: `Bearer realm="http://h/"`, code: "policy", says: "https" },
  {
    why: "a wrong password",
    request: USER,
    status: 401,
    code: "source_refused",
    says: `refused user "u" for repository "lab/app"`,
  },
  { why: "anonymous access", status: 403, code: "source_refused", says: "anonymous access" },
  { why: "no token server for anonymous access", status: 404, code: "source_refused", says: "404" },
  { why: "a broken token server", status: 503, code: "source_failed", says: "503" },
  { why: "a busy token server", status: 429, code: "source_failed", says: "429" },
  { why: "an answer that is HTML", body: "<html>", code: "protocol", says: "JSON" },
  { why: "an answer that is null", body: "null", code: "protocol", says: "JSON object" },
  { why: "an answer without token", body: {}, code: "protocol", says: "token" },
  { why: "an empty token", body: { token: "" }, code: "protocol", says: "token" },
  { why: "a token that is a number", body: { token: 7 }, code: "protocol", says: "token" },
  { why: "a token with a line break", body: { token: "a\r\nx-evil: 1" }, code: "protocol", says: "token" },
];

for (const { why, code, says, header = CHALLENGE, request = ANONYMOUS, status = 200, body } of BAD) {
  Deno.test(`authorize() fails on ${why}`, async () => {
    const { auth } = setUp(() => ({ status, ...(body === undefined ? {} : { body }) }));
    const error = await assertRejects(() => auth.authorize(header, request, { signal }), LacewingError);
    assertEquals(error.code, code);
    assertStringIncludes(error.message, says);
    assert(!error.message.includes("p:ä"));
  });
}

Deno.test("authorize() lets a clear-text registry name a clear-text realm", async () => {
  const { auth } = setUp(() => ({}));
  const header = `Bearer realm="http://127.0.0.1:5003/token"`;
  assertEquals(await auth.authorize(header, { ...USER, origin: "http://127.0.0.1:5000" }, { signal }), "Bearer t1");
});
