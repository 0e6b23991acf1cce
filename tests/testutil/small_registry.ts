/**
 * A small read-only registry in the test's own process: serves images from
 * memory, or from an OCI layout on disk, as the distribution specification
 * wants it (ranges, digests, error envelope), with Basic or token sign-in, a
 * count of the body bytes sent, and faults on demand. Clients such as skopeo
 * pull from it. As Debian's registry it hides a manifest (404) whose type the
 * Accept header leaves out.
 */
import { randomUUID } from "node:crypto";
import { descriptorOf, type TestBlob, type TestImage } from "./image.ts";
import { basicCredentials } from "./token_server.ts";

export interface SmallRegistryOptions {
  hostname?: string;
  port?: number;
  /** `basic` and `token` want `user` and `pass`. Default `none`. */
  auth?: "none" | "basic" | "token";
  username?: string;
  password?: string;
  /** With `token`: anyone gets a token to pull. */
  anonymous?: boolean;
  /** With `token`: seconds that a token lives. Default 300. */
  tokenLifeSeconds?: number;
  /** PEM texts: serves https. */
  tls?: { cert: string; key: string };
}

/** An answer in place of the content. */
export interface RegistryFault {
  status: number;
  /** How often; default always. */
  times?: number;
  headers?: Record<string, string>;
}

export interface RegistryRequest {
  readonly method: string;
  /** Path with query. */
  readonly path: string;
  readonly authorization: string | null;
  readonly accept: string | null;
  readonly range: string | null;
  status: number;
}

/** Bytes in memory, or a file of them. */
type Stored =
  & { readonly mediaType: string; readonly size: number }
  & (
    | { readonly bytes: Uint8Array<ArrayBuffer> }
    | { readonly path: string }
  );

interface Repository {
  readonly tags: Map<string, string>;
  readonly manifests: Map<string, Stored>;
  readonly blobs: Map<string, Stored>;
}

const CHUNK_LENGTH = 64 * 1024;

/** Starts a registry on loopback. */
export function startSmallRegistry(options: SmallRegistryOptions = {}): SmallRegistry {
  return new SmallRegistry(options);
}

export class SmallRegistry implements AsyncDisposable {
  readonly requests: RegistryRequest[] = [];
  /** Body bytes handed to the network. */
  readonly sent = { manifests: 0, blobs: 0 };
  readonly #repositories = new Map<string, Repository>();
  readonly #faults = new Map<string, RegistryFault>();
  readonly #tokens = new Map<string, { scopes: readonly string[]; expiresAtMs: number }>();
  #server: Deno.HttpServer<Deno.NetAddr> | null = null;
  #port: number;

  constructor(private readonly options: SmallRegistryOptions) {
    this.#port = options.port ?? 0;
    this.start();
  }

  get host(): string {
    return `${this.options.hostname ?? "127.0.0.1"}:${this.#port}`;
  }

  get url(): string {
    return `${this.options.tls === undefined ? "http" : "https"}://${this.host}`;
  }

  manifestUrl(name: string, reference: string): string {
    return `${this.url}/v2/${name}/manifests/${reference}`;
  }

  blobUrl(name: string, digest: string): string {
    return `${this.url}/v2/${name}/blobs/${digest}`;
  }

  /** Body bytes of manifests and blobs handed to the network so far. */
  bytesSent(): number {
    return this.sent.manifests + this.sent.blobs;
  }

  /** Serves an image under a name and tag. */
  add(image: TestImage, { name, tag }: { name: string; tag: string }): void {
    for (const blob of image.manifests.values()) this.addManifest(name, blob);
    for (const blob of image.blobs.values()) this.addBlob(name, blob);
    this.#repository(name).tags.set(tag, image.index.digest);
  }

  addBlob(name: string, { digest, bytes, mediaType }: TestBlob): void {
    this.#repository(name).blobs.set(digest, { bytes, mediaType, size: bytes.length });
  }

  /** Serves one manifest by digest, and by the tag if one is given. */
  addManifest(name: string, { digest, bytes, mediaType }: TestBlob, tag?: string): void {
    const repository = this.#repository(name);
    repository.manifests.set(digest, { bytes, mediaType, size: bytes.length });
    if (tag !== undefined) repository.tags.set(tag, digest);
  }

  /** Serves what stands in an OCI layout; layers are read from disk for each request. */
  async addLayout(folder: string, { name, tag }: { name: string; tag: string }): Promise<void> {
    const path = (digest: string) => `${folder}/blobs/${digest.replace(":", "/")}`;
    const repository = this.#repository(name);
    const addManifest = async ({ digest, mediaType }: ReturnType<typeof descriptorOf>): Promise<void> => {
      const bytes = await Deno.readFile(path(digest));
      repository.manifests.set(digest, { bytes, mediaType, size: bytes.length });
      const { manifests = [], config, layers = [] } = JSON.parse(new TextDecoder().decode(bytes));
      for (const child of manifests) await addManifest(child);
      for (const blob of config === undefined ? [] : [config, ...layers]) {
        repository.blobs.set(blob.digest, { path: path(blob.digest), mediaType: blob.mediaType, size: blob.size });
      }
    };
    const { manifests: [root] } = JSON.parse(await Deno.readTextFile(`${folder}/index.json`));
    await addManifest(root);
    repository.tags.set(tag, root.digest);
  }

  /** Answers requests for a tag or digest (or path `/token`) with this; null ends it. */
  fault(reference: string, fault: RegistryFault | null): void {
    if (fault === null) this.#faults.delete(reference);
    else this.#faults.set(reference, { ...fault });
  }

  /** Tokens given so far are no longer accepted. */
  revokeTokens(): void {
    this.#tokens.clear();
  }

  /** Serves again after `stop`, on the same port. */
  start(): void {
    if (this.#server !== null) return;
    const { hostname = "127.0.0.1", tls } = this.options;
    const listen = { port: this.#port, hostname, onListen: () => {}, ...tls };
    this.#server = Deno.serve(listen, (request) => this.#serve(request)) as Deno.HttpServer<Deno.NetAddr>;
    this.#port = this.#server.addr.port;
  }

  /** Refuses connections from now on. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    await server?.shutdown();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #serve(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const { headers } = request;
    const entry: RegistryRequest = {
      method: request.method,
      path: url.pathname + url.search,
      authorization: headers.get("authorization"),
      accept: headers.get("accept"),
      range: headers.get("range"),
      status: 0,
    };
    this.requests.push(entry);
    const response = await this.#route(request, url);
    entry.status = response.status;
    if (request.method !== "HEAD") return response;
    await response.body?.cancel();
    return new Response(null, { status: response.status, headers: response.headers });
  }

  #route(request: Request, url: URL): Promise<Response> | Response {
    if (url.pathname === "/token") return this.#fault("/token") ?? this.#issueToken(request, url);
    if (request.method !== "GET" && request.method !== "HEAD") return failure(405, "UNSUPPORTED");
    if (url.pathname === "/v2/") return this.#challenge(request, null) ?? Response.json({}, { headers: VERSION });
    const match = /^\/v2\/(.+)\/(manifests|blobs|tags)\/([^/]+)$/.exec(decodeURIComponent(url.pathname));
    const [, name = "", kind = "", reference = ""] = match ?? [];
    if (match === null) return failure(404, "NAME_UNKNOWN");
    const challenge = this.#challenge(request, name);
    if (challenge !== null) return challenge;
    const repository = this.#repositories.get(name);
    if (repository === undefined) return failure(404, "NAME_UNKNOWN");
    if (kind === "tags") return Response.json({ name, tags: [...repository.tags.keys()] });
    const digest = kind === "manifests" ? repository.tags.get(reference) ?? reference : reference;
    const fault = this.#fault(reference) ?? this.#fault(digest);
    if (fault !== null) return fault;
    const isBlob = kind === "blobs";
    const stored = (isBlob ? repository.blobs : repository.manifests).get(digest);
    if (stored === undefined) return failure(404, isBlob ? "BLOB_UNKNOWN" : "MANIFEST_UNKNOWN");
    if (!isBlob && !accepts(request, stored.mediaType)) return failure(404, "MANIFEST_UNKNOWN");
    return this.#content(request, stored, { digest, isBlob });
  }

  #content(request: Request, stored: Stored, { digest, isBlob }: { digest: string; isBlob: boolean }): Response {
    const headers = new Headers({
      ...VERSION,
      "docker-content-digest": digest,
      etag: `"${digest}"`,
      "content-type": isBlob ? "application/octet-stream" : stored.mediaType,
    });
    if (isBlob) headers.set("accept-ranges", "bytes");
    const range = isBlob ? rangeOf(request, { size: stored.size, etag: `"${digest}"` }) : null;
    if (range === "unsatisfiable") {
      return new Response(null, { status: 416, headers: { "content-range": `bytes */${stored.size}` } });
    }
    const { offset, length } = range ?? { offset: 0, length: stored.size };
    headers.set("content-length", String(length));
    if (range !== null) headers.set("content-range", `bytes ${offset}-${offset + length - 1}/${stored.size}`);
    const status = range === null ? 200 : 206;
    if (request.method === "HEAD") return new Response(null, { status, headers });
    const count = (bytes: number) => this.sent[isBlob ? "blobs" : "manifests"] += bytes;
    return new Response(bodyOf(stored, { offset, length, count }), { status, headers });
  }

  #fault(reference: string): Response | null {
    const fault = this.#faults.get(reference);
    if (fault === undefined) return null;
    if (fault.times !== undefined) {
      fault.times -= 1;
      if (fault.times <= 0) this.#faults.delete(reference);
    }
    return failure(fault.status, "UNKNOWN", fault.headers);
  }

  #challenge(request: Request, name: string | null): Response | null {
    const { auth = "none" } = this.options;
    const authorization = request.headers.get("authorization");
    if (auth === "none") return null;
    if (auth === "basic") {
      const isRight = this.#isKnown(basicCredentials(authorization));
      return isRight ? null : failure(401, "UNAUTHORIZED", { "www-authenticate": `Basic realm="small registry"` });
    }
    const token = this.#tokens.get(/^Bearer (\S+)$/.exec(authorization ?? "")?.[1] ?? "");
    const scope = `repository:${name}:pull`;
    const isGood = token !== undefined && token.expiresAtMs > Date.now();
    if (isGood && (name === null || token.scopes.includes(scope))) return null;
    const scoped = name === null ? "" : `,scope="${scope}"`;
    const challenge = `Bearer realm="${this.url}/token",service="small-registry"${scoped}`;
    return failure(401, "UNAUTHORIZED", { "www-authenticate": challenge });
  }

  async #issueToken(request: Request, url: URL): Promise<Response> {
    const form = new URLSearchParams(request.method === "POST" ? await request.text() : "");
    const given = basicCredentials(request.headers.get("authorization")) ??
      (form.has("username") ? [form.get("username") ?? "", form.get("password") ?? ""] as [string, string] : null);
    const isAllowed = given === null ? this.options.anonymous === true : this.#isKnown(given);
    if (!isAllowed) return failure(401, "UNAUTHORIZED");
    const token = randomUUID();
    const lifeSeconds = this.options.tokenLifeSeconds ?? 300;
    const scopes = [...url.searchParams.getAll("scope"), ...form.getAll("scope")].flatMap((text) => text.split(" "));
    this.#tokens.set(token, { scopes, expiresAtMs: Date.now() + lifeSeconds * 1000 });
    return Response.json({ token, expires_in: lifeSeconds });
  }

  #isKnown(given: [string, string] | null): boolean {
    const { username = "user", password = "pass" } = this.options;
    return given !== null && given[0] === username && given[1] === password;
  }

  #repository(name: string): Repository {
    let repository = this.#repositories.get(name);
    if (repository === undefined) {
      repository = { tags: new Map(), manifests: new Map(), blobs: new Map() };
      this.#repositories.set(name, repository);
    }
    return repository;
  }
}

const VERSION = { "docker-distribution-api-version": "registry/2.0" };

function failure(status: number, code: string, headers: Record<string, string> = {}): Response {
  const body = { errors: [{ code, message: code.toLowerCase().replaceAll("_", " ") }] };
  return Response.json(body, { status, headers: { ...VERSION, ...headers } });
}

function accepts(request: Request, mediaType: string): boolean {
  const accept = request.headers.get("accept") ?? "";
  return accept.split(",").some((one) => ["*/*", mediaType].includes(one.split(";", 1)[0]?.trim() ?? ""));
}

function rangeOf(
  request: Request,
  { size, etag }: { size: number; etag: string },
): { offset: number; length: number } | "unsatisfiable" | null {
  const match = /^bytes=(\d*)-(\d*)$/.exec(request.headers.get("range") ?? "");
  const [, first = "", last = ""] = match ?? [];
  if (match === null || (first === "" && last === "")) return null;
  if ((request.headers.get("if-range") ?? etag) !== etag) return null;
  const offset = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size - 1 : Math.min(Number(last), size - 1);
  return offset > end ? "unsatisfiable" : { offset, length: end - offset + 1 };
}

function bodyOf(
  stored: Stored,
  { offset, length, count }: { offset: number; length: number; count: (bytes: number) => void },
): ReadableStream<Uint8Array<ArrayBuffer>> {
  let at = offset;
  const end = offset + length;
  let file: Deno.FsFile | null = null;
  const close = () => {
    file?.close();
    file = null;
  };
  return new ReadableStream({
    async pull(controller) {
      const step = Math.min(CHUNK_LENGTH, end - at);
      if (step > 0 && "bytes" in stored) controller.enqueue(stored.bytes.slice(at, at + step));
      if (step > 0 && "path" in stored) {
        if (file === null) {
          file = await Deno.open(stored.path);
          await file.seek(at, Deno.SeekMode.Start);
        }
        const buffer = new Uint8Array(step);
        let filled = 0;
        while (filled < step) {
          const read = await file.read(buffer.subarray(filled));
          if (read === null) throw new Error(`${stored.path} is shorter than its descriptor says`);
          filled += read;
        }
        controller.enqueue(buffer);
      }
      at += step;
      count(step);
      if (at < end) return;
      close();
      controller.close();
    },
    cancel: close,
  }, { highWaterMark: 0 });
}
