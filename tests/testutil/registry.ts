/**
 * Debian's docker-registry as a real process in a temporary folder, filled by
 * skopeo. It can be stopped and started again on its port, keeps its access
 * log, and leaves nothing behind. Whether the tools are there is for the
 * caller to ask: `hasTools(["docker-registry", "skopeo"])`.
 */
import { stringify } from "@std/yaml";
import { TextLineStream } from "@std/streams/text-line-stream";
import { type Certificates, makeCertificates } from "./certificates.ts";
import { runBytes } from "./child.ts";
import { type TestImage, writeLayout } from "./image.ts";
import { TOKEN_ISSUER, TOKEN_SERVICE, TokenServer, type TokenServerOptions } from "./token_server.ts";

export interface RegistryOptions {
  /** `htpasswd` is Basic. Username `user`, password `pass`. Default `plain`: open to all. */
  auth?: "plain" | "htpasswd" | "token";
  /** https with a certificate of an own authority, for `localhost` and `127.0.0.1`. */
  tls?: boolean;
  /** Where it listens, when not on loopback, and the command line that runs others there: `nsenter …`. */
  place?: { readonly address: string; readonly within: readonly string[] };
  /** For `auth: "token"`. */
  token?: Omit<TokenServerOptions, "certificates">;
}

/** `user:pass` by `htpasswd -B`, so that the tests need no htpasswd. */
const HTPASSWD = "user:$2y$05$HEL41Eo25zg0G/8GjrWuKecETJSuFSIHbBplouEx84/q8n1Nq7wLe\n";
const START_ATTEMPTS = 3;

/** What it answered to one GET of a blob. */
export interface BlobRead {
  readonly digest: string;
  readonly status: number;
  /** Of the body. */
  readonly bytes: number;
  readonly userAgent: string;
}

/** Whether all of these programs are on the PATH. */
export function hasTools(names: readonly string[]): boolean {
  const folders = (Deno.env.get("PATH") ?? "").split(":").filter((folder) => folder !== "");
  return names.every((name) =>
    folders.some((folder) => {
      try {
        return Deno.statSync(`${folder}/${name}`).isFile;
      } catch {
        return false;
      }
    })
  );
}

/** Starts a registry and waits until it listens. */
export async function startRegistry(options: RegistryOptions = {}): Promise<TestRegistry> {
  const folder = await Deno.makeTempDir({ prefix: "lacewing-registry-" });
  const needsCertificates = options.tls === true || options.auth === "token";
  const certificates = needsCertificates ? await makeCertificates(`${folder}/certs`) : null;
  const tokens = options.auth === "token" && certificates !== null
    ? new TokenServer({ ...options.token, certificates })
    : null;
  const registry = new TestRegistry(folder, { ...options, certificates, tokens });
  try {
    await registry.start();
  } catch (error) {
    await registry[Symbol.asyncDispose]();
    throw error;
  }
  return registry;
}

interface Parts extends RegistryOptions {
  readonly certificates: Certificates | null;
  readonly tokens: TokenServer | null;
}

export class TestRegistry implements AsyncDisposable {
  #port = 0;
  #process: Deno.ChildProcess | null = null;
  #ended: Promise<unknown> = Promise.resolve();
  #lines: string[] = [];

  constructor(private readonly folder: string, private readonly parts: Parts) {}

  /** `127.0.0.1:PORT`, or `localhost:PORT` with TLS; in another place its address. */
  get host(): string {
    return `${this.parts.tls && this.parts.place === undefined ? "localhost" : this.#address}:${this.#port}`;
  }

  get url(): string {
    return `${this.parts.tls ? "https" : "http"}://${this.host}`;
  }

  get tokens(): TokenServer | null {
    return this.parts.tokens;
  }

  /** PEM of the authority that signed its certificate, or null. */
  get ca(): string | null {
    return this.parts.tls ? this.parts.certificates?.ca ?? null : null;
  }

  /** `URL/v2/NAME/manifests/REFERENCE`. */
  manifestUrl(name: string, reference: string): string {
    return `${this.url}/v2/${name}/manifests/${reference}`;
  }

  /** Lines of its access log since the first start: `… "GET /v2/… HTTP/1.1" 200 …`. */
  accessLog(): string[] {
    return this.#lines.filter((line) => / "(?:GET|HEAD|PUT|POST|PATCH|DELETE) \S+ HTTP\//.test(line));
  }

  /**
   * What it answered to GETs of blobs: the lines of its access log since the first start, all of them that were
   * written before this call.
   */
  async blobReads(): Promise<BlobRead[]> {
    const mark = `/v2/?mark=${crypto.randomUUID()}`;
    if (this.parts.tls) await this.#tlsGet(mark);
    else if (!await this.#isAnswered(mark, this.#port)) throw new Error("the registry does not answer");
    while (!this.#lines.some((line) => line.includes(mark))) await new Promise((resolve) => setTimeout(resolve, 10));
    return this.accessLog().flatMap((line) => {
      const match = / "GET \S+\/blobs\/(sha256:\w+)\S* HTTP\/1\.1" (\d+) (\d+) ".*?" "(.*?)"/.exec(line);
      if (match === null) return [];
      const [, digest = "", status, bytes, userAgent = ""] = match;
      return [{ digest, status: Number(status), bytes: Number(bytes), userAgent }];
    });
  }

  /** Everything it wrote. */
  log(): string {
    return this.#lines.join("\n");
  }

  /** Starts it, on the same port as before. */
  async start(): Promise<void> {
    for (let attempt = 1;; attempt++) {
      if (this.#process !== null) throw new Error("the registry runs already");
      const port = this.#port === 0 ? this.#freePort() : this.#port;
      const from = this.#lines.length;
      const config = await this.#writeConfig(port);
      const [command = "", ...args] = [...this.#within, "docker-registry", "serve", config];
      const process = new Deno.Command(command, {
        args,
        stdin: "null",
        stdout: "piped",
        stderr: "piped",
      }).spawn();
      this.#process = process;
      const listening = Promise.withResolvers<boolean>();
      const onLine = (line: string) => {
        this.#lines.push(line);
        if (line.includes("listening on")) listening.resolve(true);
      };
      this.#ended = Promise.all([collect(process.stdout, onLine), collect(process.stderr, onLine), process.status])
        .then(
          () => {
            this.#process = null;
            listening.resolve(false);
          },
        );
      const isUp = await listening.promise;
      this.#port = port;
      if (isUp && await this.#accepts(port)) return;
      await this.stop();
      if (attempt >= START_ATTEMPTS) {
        throw new Error(`docker-registry did not start:\n${this.#lines.slice(from).join("\n")}`);
      }
      this.#port = 0;
    }
  }

  /** Kills it, as a power cut would. Its data stay. */
  async stop(): Promise<void> {
    this.#process?.kill("SIGKILL");
    await this.#ended;
  }

  /** Pushes an image as it is, both platforms; `format` `v2s2` turns it into Docker types. */
  async push(
    image: TestImage,
    { name, tag, format = "oci" }: { name: string; tag: string; format?: "oci" | "v2s2" },
  ): Promise<void> {
    const layout = await Deno.makeTempDir({ dir: this.folder, prefix: "layout-" });
    try {
      await writeLayout(image, { folder: layout, tag });
      const args = ["copy", "--all", "--quiet", ...(format === "v2s2" ? ["--format", "v2s2"] : ["--preserve-digests"])];
      if (this.parts.auth === "htpasswd" || this.parts.auth === "token") args.push("--dest-creds", "user:pass");
      if (this.parts.tls) args.push("--dest-cert-dir", await this.#certificateFolder());
      else args.push("--dest-tls-verify=false");
      await this.#skopeo([...args, `oci:${layout}:${tag}`, `docker://${this.host}/${name}:${tag}`]);
    } finally {
      await Deno.remove(layout, { recursive: true });
    }
  }

  /** Gives an image that it has another name; no blob is sent again. Open registries without TLS only. */
  async alias(from: string, to: string): Promise<void> {
    const [source, target] = [from, to].map((reference) => `docker://${this.host}/${reference}`);
    const args = [
      "copy",
      "--all",
      "--quiet",
      "--preserve-digests",
      "--src-tls-verify=false",
      "--dest-tls-verify=false",
    ];
    await this.#skopeo([...args, source!, target!]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.parts.tokens?.[Symbol.asyncDispose]();
    await Deno.remove(this.folder, { recursive: true });
  }

  get #address(): string {
    return this.parts.place?.address ?? "127.0.0.1";
  }

  get #within(): readonly string[] {
    return this.parts.place?.within ?? [];
  }

  /** In a place of its own nobody else has ports. */
  #freePort(): number {
    return this.parts.place === undefined ? freePort() : 5000;
  }

  /** The log line comes just before the listener: asks until the connection is taken. */
  async #accepts(port: number): Promise<boolean> {
    for (let attempt = 0; attempt < 100; attempt++) {
      if (await this.#isAnswered("/v2/", port)) return true;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return false;
  }

  /** One GET where the registry is; whatever it says is an answer, with TLS what it says to plain text. */
  async #isAnswered(path: string, port: number): Promise<boolean> {
    const script = `exec 3<>/dev/tcp/$0/$1 && printf 'GET %s HTTP/1.0\\r\\n\\r\\n' "$2" >&3 && cat <&3`;
    const [command = "", ...args] = [...this.#within, "bash", "-c", script, this.#address, String(port), path];
    return (await runBytes(command, { args })).code === 0;
  }

  async #tlsGet(path: string): Promise<void> {
    using client = Deno.createHttpClient({ caCerts: [this.ca ?? ""] });
    await (await fetch(this.url + path, { client })).body?.cancel();
  }

  async #skopeo(args: readonly string[]): Promise<void> {
    const policy = `${this.folder}/policy.json`;
    const registries = `${this.folder}/registries.conf`;
    await Deno.writeTextFile(policy, `{"default":[{"type":"insecureAcceptAnything"}]}`);
    await Deno.writeTextFile(registries, "");
    const own = ["--policy", policy, "--registries-conf", registries, "--tmpdir", this.folder];
    const [command = "", ...words] = [...this.#within, "skopeo", ...own, ...args];
    const { code, stderr } = await runBytes(command, { args: words });
    if (code !== 0) throw new Error(`skopeo ${args[0]} failed: ${stderr}\n${this.log().slice(-4000)}`);
  }

  async #certificateFolder(): Promise<string> {
    const folder = `${this.folder}/trusted`;
    await Deno.mkdir(folder, { recursive: true });
    await Deno.writeTextFile(`${folder}/ca.crt`, this.parts.certificates?.ca ?? "");
    return folder;
  }

  async #writeConfig(port: number): Promise<string> {
    const { auth, tls, certificates, tokens } = this.parts;
    const config: Record<string, unknown> = {
      version: 0.1,
      log: { level: "info", accesslog: { disabled: false } },
      storage: { filesystem: { rootdirectory: `${this.folder}/data` }, delete: { enabled: true } },
      http: {
        addr: `${this.#address}:${port}`,
        secret: "test",
        ...(tls && certificates !== null
          ? { tls: { certificate: certificates.certPath, key: certificates.keyPath } }
          : {}),
      },
    };
    if (auth === "htpasswd") {
      await Deno.writeTextFile(`${this.folder}/htpasswd`, HTPASSWD);
      config.auth = { htpasswd: { realm: "test", path: `${this.folder}/htpasswd` } };
    }
    if (tokens !== null && certificates !== null) {
      const token = { realm: tokens.realm, service: TOKEN_SERVICE, issuer: TOKEN_ISSUER };
      config.auth = { token: { ...token, rootcertbundle: certificates.caPath } };
    }
    const path = `${this.folder}/config.yml`;
    await Deno.writeTextFile(path, stringify(config));
    return path;
  }
}

/** A port that was free a moment ago. */
export function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

async function collect(stream: ReadableStream<Uint8Array<ArrayBuffer>>, onLine: (line: string) => void): Promise<void> {
  for await (const line of stream.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream())) onLine(line);
}
