/**
 * A reverse proxy in front of a registry that goes wrong on demand, byte by
 * byte: below HTTP libraries, which would put right what is to be wrong. Every
 * repository is the same one behind it, so that each row of a table can have a
 * fault, and a place in caches, of its own.
 */
import { HttpReader } from "../../peer/proxy/http_reader.ts";
import { endToEnd, type Field, formatHead, parseRequestHead } from "../../peer/proxy/http_message.ts";

export type Fault =
  /** The connection ends before the head. */
  | { readonly act: "reset" }
  | { readonly act: "status"; readonly status: number; readonly fields?: readonly Field[] }
  /** The body ends, or stops, after so many bytes of an answer; shorter ones are whole. */
  | { readonly act: "cut" | "stall"; readonly after: number }
  /** The head comes late. */
  | { readonly act: "delay"; readonly ms: number }
  /** One byte is another one: the first or the last of the content. */
  | { readonly act: "wrong"; readonly at: "first" | "last" }
  /** Fields are missing, or are others. */
  | { readonly act: "fields"; readonly drop?: readonly string[]; readonly set?: readonly Field[] }
  /** No length is told. */
  | { readonly act: "chunked" }
  /** Ranges are ignored. */
  | { readonly act: "whole" };

export interface FaultRule {
  readonly on: "manifest" | "blob";
  readonly fault: Fault;
  /** Answers that go wrong; default: all. */
  readonly times?: number;
}

interface Answer {
  status: number;
  fields: Field[];
  body: Uint8Array;
}

const STEP = 64 * 1024;

export class FaultyRegistry implements AsyncDisposable {
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #rules = new Map<string, { rule: FaultRule; left: number }>();
  readonly #expired = new Set<string>();
  readonly #struck = new Map<string, number>();
  readonly #asked = new Map<string, number>();
  readonly #conns = new Set<Deno.Conn>();
  readonly #running = new Set<Promise<void>>();
  readonly #closed = new AbortController();
  readonly #accepting: Promise<void>;

  /** @param real URL of the registry; its repository `lab/app` stands for every other one */
  constructor(private readonly real: string) {
    this.#accepting = this.#accept();
  }

  /** `HOST:PORT` */
  get host(): string {
    return `127.0.0.1:${this.#listener.addr.port}`;
  }

  get url(): string {
    return `http://${this.host}`;
  }

  /** What goes wrong in a repository from now on. */
  set(repository: string, rule: FaultRule | null): void {
    if (rule === null) this.#rules.delete(repository);
    else this.#rules.set(repository, { rule, left: rule.times ?? Infinity });
  }

  /** Credentials are worth nothing from now on, and every connection ends. */
  expire(authorization: string): void {
    this.#expired.add(authorization);
    for (const conn of this.#conns) close(conn);
  }

  /** Requests for a repository so far. */
  asked(repository: string): number {
    return this.#asked.get(repository) ?? 0;
  }

  /** Answers of a repository that went wrong so far. */
  struck(repository: string): number {
    return this.#struck.get(repository) ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort();
    this.#listener.close();
    for (const conn of this.#conns) close(conn);
    await Promise.all([this.#accepting, ...this.#running]);
  }

  async #accept(): Promise<void> {
    try {
      for await (const conn of this.#listener) {
        this.#conns.add(conn);
        const running = this.#serve(conn).catch(() => {}).finally(() => {
          close(conn);
          this.#conns.delete(conn);
          this.#running.delete(running);
        });
        this.#running.add(running);
      }
    } catch {
      // Closed.
    }
  }

  async #serve(conn: Deno.Conn): Promise<void> {
    const reader = new HttpReader(conn);
    for (let text = await reader.readHead(); text !== null; text = await reader.readHead()) {
      const { method, target, fields } = parseRequestHead(text);
      const match = /^\/v2\/(.+?)\/(manifests|blobs)\//.exec(target);
      const repository = match?.[1] ?? "";
      this.#asked.set(repository, (this.#asked.get(repository) ?? 0) + 1);
      const on = match?.[2] === "blobs" ? "blob" : "manifest";
      const early = this.#fault(repository, { on, isHead: method === "HEAD", length: null });
      if (early?.act === "reset") return;
      const credentials = fields.find(([name]) => name.toLowerCase() === "authorization")?.[1] ?? "";
      const ignored = [
        "host",
        ...(early?.act === "whole" ? ["range"] : []),
        ...(this.#expired.has(credentials) ? ["authorization"] : []),
      ];
      const answer = await this.#ask(method, target.replace(/^\/v2\/.+?\/(?=manifests\/|blobs\/)/, "/v2/lab/app/"), {
        fields: endToEnd(fields, ignored),
      });
      const fault = early ?? this.#fault(repository, { on, isHead: method === "HEAD", length: answer.body.length });
      if (!await this.#give(conn, { method, answer, fault })) return;
    }
  }

  /** @param length bytes of the answer's body, or null before it is known */
  #fault(
    repository: string,
    { on, isHead, length }: { on: FaultRule["on"]; isHead: boolean; length: number | null },
  ): Fault | null {
    const entry = this.#rules.get(repository);
    if (entry === undefined || entry.rule.on !== on || entry.left <= 0) return null;
    const { fault } = entry.rule;
    // What befalls bodies does not wear out on an answer without one, or with one that is too short for it.
    if (isHead && ["cut", "stall", "wrong", "chunked"].includes(fault.act)) return null;
    const isShort = fault.act === "cut" || fault.act === "stall";
    if (isShort ? length === null || length <= fault.after : length !== null) return null;
    entry.left -= 1;
    this.#struck.set(repository, this.struck(repository) + 1);
    return fault;
  }

  async #ask(method: string, path: string, { fields }: { fields: Field[] }): Promise<Answer> {
    const headers = new Headers(fields.map(([name, value]): [string, string] => [name, value]));
    headers.set("accept-encoding", "identity");
    const response = await fetch(this.real + path, { method, headers, signal: this.#closed.signal });
    const body = await response.bytes();
    return { status: response.status, fields: [...response.headers], body };
  }

  /** @returns whether the connection goes on */
  async #give(
    conn: Deno.Conn,
    { method, answer, fault }: { method: string; answer: Answer; fault: Fault | null },
  ): Promise<boolean> {
    const { status, fields, body } = spoilt(answer, fault);
    if (fault?.act === "delay") await this.#wait(fault.ms);
    const isChunked = fault?.act === "chunked" && method !== "HEAD";
    const length: Field[] = isChunked ? [["transfer-encoding", "chunked"]] : [["content-length", String(body.length)]];
    // A head of HEAD tells the length of what GET would give.
    const own = method === "HEAD" && fault?.act !== "status" ? [] : length;
    const told = own.length === 0 ? fields : fields.filter(([name]) => name !== "content-length");
    await write(conn, formatHead(`HTTP/1.1 ${status} X`, [...told, ...own]));
    if (method === "HEAD") return true;
    const isShort = fault?.act === "cut" || fault?.act === "stall";
    const end = isShort ? Math.min(body.length, fault.after) : body.length;
    for (let at = 0; at < end; at += STEP) {
      const part = body.subarray(at, Math.min(at + STEP, end));
      if (isChunked) await write(conn, new TextEncoder().encode(`${part.length.toString(16)}\r\n`));
      await write(conn, part);
      if (isChunked) await write(conn, new TextEncoder().encode("\r\n"));
    }
    if (isChunked) await write(conn, new TextEncoder().encode("0\r\n\r\n"));
    if (!isShort || end === body.length) return true;
    // A client that gives up ends the waiting.
    if (fault.act === "stall") await conn.read(new Uint8Array(1));
    return false;
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.#closed.signal.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      this.#closed.signal.addEventListener("abort", end);
    });
  }
}

function spoilt({ status, fields, body }: Answer, fault: Fault | null): Answer {
  if (fault?.act === "status") {
    const text = new TextEncoder().encode(JSON.stringify({ errors: [{ code: "UNKNOWN", message: "made to fail" }] }));
    return { status: fault.status, fields: [["content-type", "application/json"], ...fault.fields ?? []], body: text };
  }
  if (fault?.act === "wrong" && body.length > 0) {
    // Of the content, not of each of its parts.
    const range = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(
      new Headers(fields.map(([n, v]) => [n, v])).get("content-range") ?? "",
    );
    const holds = fault.at === "first"
      ? (range?.[1] ?? "0") === "0"
      : range === null || Number(range[2]) + 1 === Number(range[3]);
    if (!holds) return { status, fields, body };
    const wrong = body.slice();
    wrong[fault.at === "first" ? 0 : wrong.length - 1]! ^= 1;
    return { status, fields, body: wrong };
  }
  if (fault?.act === "fields") {
    const names = [...fault.drop ?? [], ...(fault.set ?? []).map(([name]) => name)];
    return { status, fields: [...fields.filter(([name]) => !names.includes(name)), ...fault.set ?? []], body };
  }
  return { status, fields, body };
}

async function write(conn: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await conn.write(bytes.subarray(at));
}

function close(conn: Deno.Conn): void {
  try {
    conn.close();
  } catch {
    // Closed already.
  }
}
