/**
 * A token server for registries in the test's own process: the Docker token
 * flow by GET with Basic and by POST form, tokens as RS256 JWT with the
 * certificate inside (`x5c`), as docker-registry wants them.
 */
import { Buffer } from "node:buffer";
import { createSign, randomUUID } from "node:crypto";
import type { Certificates } from "./certificates.ts";

export const TOKEN_ISSUER = "test-issuer";
export const TOKEN_SERVICE = "test-registry";

export interface TokenServerOptions {
  certificates: Certificates;
  username?: string;
  password?: string;
  /** Passwords of users who are known, and may do nothing. */
  strangers?: Readonly<Record<string, string>>;
  /** Gives pull tokens to callers without credentials. */
  anonymous?: boolean;
  lifeSeconds?: number;
  /** Answers GET with 405, as servers that know only OAuth2 do; `allowGet` changes it. */
  postOnly?: boolean;
}

interface Grant {
  readonly username: string | null;
  readonly password: string | null;
  readonly scopes: readonly string[];
  readonly service: string;
}

export class TokenServer implements AsyncDisposable {
  /** What was asked, in order: method, path with query, and whether credentials came with it. */
  readonly requests: { method: string; url: string; authorization: string | null; body: string }[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  #isGetAllowed: boolean;

  constructor(private readonly options: TokenServerOptions) {
    this.#isGetAllowed = options.postOnly !== true;
    this.#server = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen: () => {} },
      (request) => this.#answer(request),
    );
  }

  /** Value of `realm` in a challenge. */
  get realm(): string {
    return `http://127.0.0.1:${this.#server.addr.port}/token`;
  }

  allowGet(isAllowed: boolean): void {
    this.#isGetAllowed = isAllowed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }

  async #answer(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const body = await request.text();
    const authorization = request.headers.get("authorization");
    this.requests.push({ method: request.method, url: url.pathname + url.search, authorization, body });
    if (request.method === "GET" && !this.#isGetAllowed) return new Response(null, { status: 405 });
    const form = new URLSearchParams(body);
    const [username, password] = basicCredentials(authorization) ?? [form.get("username"), form.get("password")];
    const scopes = [...url.searchParams.getAll("scope"), ...form.getAll("scope")].flatMap((text) => text.split(" "));
    const service = url.searchParams.get("service") ?? form.get("service") ?? TOKEN_SERVICE;
    const token = this.#issue({ username, password, scopes, service });
    if (token === null) return Response.json({ errors: [{ code: "UNAUTHORIZED" }] }, { status: 401 });
    const expires_in = this.options.lifeSeconds ?? 300;
    // OAuth2 answers carry `access_token` alone.
    if (request.method === "POST") return Response.json({ access_token: token, expires_in });
    return Response.json({ token, expires_in, issued_at: new Date().toISOString() });
  }

  #issue({ username, password, scopes, service }: Grant): string | null {
    const { username: wantedName = "user", password: wantedPassword = "pass" } = this.options;
    const isKnown = username === wantedName && password === wantedPassword;
    const { strangers = {}, anonymous = false } = this.options;
    const isStranger = username !== null && password !== null && strangers[username] === password;
    if (!isKnown && !isStranger && (username !== null || !anonymous)) return null;
    const access = scopes.filter((scope) => scope !== "").map((scope) => {
      const [type = "", name = "", actions = ""] = scope.split(":");
      return {
        type,
        name,
        actions: actions.split(",").filter((action) => isKnown || (!isStranger && action === "pull")),
      };
    });
    return this.#sign(username ?? "", { aud: service, access });
  }

  #sign(sub: string, claims: Record<string, unknown>): string {
    const { cert, key } = this.options.certificates;
    const nowS = Math.floor(Date.now() / 1000);
    const life = { exp: nowS + (this.options.lifeSeconds ?? 300), nbf: nowS - 10, iat: nowS, jti: randomUUID() };
    const header = { typ: "JWT", alg: "RS256", x5c: [cert.replace(/-----[^-]+-----|\s/g, "")] };
    const text = [header, { iss: TOKEN_ISSUER, sub, ...life, ...claims }].map((part) =>
      Buffer.from(JSON.stringify(part)).toString("base64url")
    ).join(".");
    return `${text}.${createSign("RSA-SHA256").update(text).sign(key).toString("base64url")}`;
  }
}

/** Username and password of a Basic header, or null. */
export function basicCredentials(authorization: string | null): [string, string] | null {
  const match = /^Basic ([A-Za-z0-9+/=]+)$/.exec(authorization ?? "");
  if (match === null) return null;
  const text = Buffer.from(match[1] ?? "", "base64").toString();
  const colon = text.indexOf(":");
  return colon < 0 ? null : [text.slice(0, colon), text.slice(colon + 1)];
}
