/** `/api/v1/personal-access-tokens`: made, listed and revoked by an admin; the token itself is shown once. */
import { createRoute, z } from "@hono/zod-openapi";
import { sha256Hex } from "../../peer/core/digest.ts";
import { newToken } from "../auth/tokens.ts";
import { type Token, TOKEN_SCOPES, type TokenStore } from "../store/tokens.ts";
import { type Api, newApi } from "./env.ts";
import { body, idParam, json, jsonPage, pageOf, pageQuery, problems, setPageHeaders } from "./schemas.ts";

const tags = ["personal-access-tokens"];
const time = z.string().openapi({ format: "date-time" });
const scopes = z.array(z.enum(TOKEN_SCOPES)).min(1, "want at least one scope").max(TOKEN_SCOPES.length);
const creation = z.strictObject({
  name: z.string().min(1).max(128),
  bio: z.string().max(4096).default(""),
  scopes,
  expires_at: z.iso.datetime({ offset: true, error: "want an RFC 3339 time such as 2030-01-31T00:00:00Z" }).nullish()
    .openapi({ description: "Absent: never." }),
}).openapi("PersonalAccessTokenRequest");
const tokenSchema = z.object({
  id: z.number().int(),
  name: z.string(),
  bio: z.string(),
  scopes,
  expires_at: time.nullable(),
  last_used_at: time.nullable(),
  created_at: time,
}).openapi("PersonalAccessToken");
const madeSchema = tokenSchema.extend({
  token: z.string().openapi({ description: "Shown this once; only its digest is kept." }),
}).openapi("NewPersonalAccessToken");

const list = createRoute({
  method: "get",
  path: "/",
  tags,
  summary: "List tokens",
  request: { query: pageQuery },
  responses: { 200: jsonPage(tokenSchema, "One page"), ...problems(422) },
});
const create = createRoute({
  method: "post",
  path: "/",
  tags,
  summary: "Make a token",
  request: { body: body(creation) },
  responses: { 200: json(madeSchema, "The token"), ...problems(400, 409, 413, 415, 422) },
});
const get = createRoute({
  method: "get",
  path: "/{id}",
  tags,
  summary: "Get a token's facts",
  request: { params: idParam },
  responses: { 200: json(tokenSchema, "The token"), ...problems(404, 422) },
});
const remove = createRoute({
  method: "delete",
  path: "/{id}",
  tags,
  summary: "Revoke a token",
  request: { params: idParam },
  responses: { 204: { description: "It is revoked" }, ...problems(404, 422) },
});

export function tokenRoutes({ tokens }: { tokens: TokenStore }): Api {
  const api = newApi();
  api.openapi(list, async (c) => {
    const page = c.req.valid("query");
    setPageHeaders(c, page, await tokens.count());
    return c.json((await tokens.list(pageOf(page))).map(tokenView), 200);
  });
  api.openapi(create, async (c) => {
    const { name, bio, scopes, expires_at } = c.req.valid("json");
    const made = await makeToken(tokens, {
      name,
      bio,
      scopes: [...new Set(scopes)],
      expiresAtMs: expires_at === undefined || expires_at === null ? null : Date.parse(expires_at),
    });
    c.header("Cache-Control", "no-store");
    return c.json({ ...tokenView(made.record), token: made.token }, 200);
  });
  api.openapi(get, async (c) => c.json(tokenView(await tokens.get(c.req.valid("param").id)), 200));
  api.openapi(remove, async (c) => {
    await tokens.remove(c.req.valid("param").id);
    return c.body(null, 204);
  });
  return api;
}

/** Makes a token and keeps its digest. @throws {LacewingError} `conflict` when the name is taken. */
export async function makeToken(
  tokens: TokenStore,
  facts: Pick<Token, "name" | "bio" | "scopes" | "expiresAtMs">,
): Promise<{ token: string; record: Token }> {
  const token = newToken("lwp");
  return { token, record: await tokens.create({ ...facts, digest: sha256Hex(token) }) };
}

/** A token as the API and the command line show it. */
export function tokenView(token: Token) {
  const rfc3339 = (ms: number | null) => ms === null ? null : new Date(ms).toISOString();
  return {
    id: token.id,
    name: token.name,
    bio: token.bio,
    scopes: token.scopes,
    expires_at: rfc3339(token.expiresAtMs),
    last_used_at: rfc3339(token.lastUsedAtMs),
    created_at: new Date(token.createdAtMs).toISOString(),
  };
}
