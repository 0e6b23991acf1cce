/**
 * The registry mirror: blobs come through the swarm, everything else passes
 * through to the registry that the request is meant for. A manifest that is on
 * this host or its neighbours (preheated) stands in when its registry is away.
 */
import { parseDigest } from "../core/digest.ts";
import { LacewingError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import type { StreamingStarter } from "../task/task.ts";
import type { Access } from "./access.ts";
import type { ClientExchange } from "./client_exchange.ts";
import type { Field } from "./http_message.ts";
import { manifestMediaType } from "./media_type.ts";
import type { OriginAnswer } from "./origin_client.ts";
import { whoAsks } from "./origin_fields.ts";
import type { Passage, PassThrough } from "./pass_through.ts";
import { refusal } from "./refusals.ts";
import { type MirrorConfig, override, type RegistryTarget, registryTarget } from "./registry_target.ts";
import { isListed, type ProxyRule, type WhiteListEntry } from "./rules.ts";
import type { Content, SharedContent } from "./shared_content.ts";
import type { Strangers } from "./strangers.ts";

export interface RegistryMirrorDeps {
  readonly tasks: StreamingStarter;
  readonly shared: SharedContent;
  readonly pass: PassThrough;
  readonly access: Access | null;
  readonly strangers: Strangers;
  readonly log: Logger;
  /** Whether a URL leads back to this proxy. */
  readonly isOwn: (url: URL) => boolean;
}

export interface RegistryMirrorConfig extends MirrorConfig {
  readonly defaultFilter: string;
  readonly defaultTag: string;
  readonly rules: readonly ProxyRule[];
  readonly whiteList: readonly WhiteListEntry[];
}

type MirrorPassage = Passage & Pick<Content, "afterRefusal">;

/** Registries take manifests up to 4 MiB. */
const MANIFEST_LENGTH_MAX = 8 * 1024 * 1024;
const STORED_TIMEOUT_MS = 10_000;

export class RegistryMirror {
  constructor(private readonly deps: RegistryMirrorDeps, private readonly config: RegistryMirrorConfig) {}

  async serve(exchange: ClientExchange): Promise<void> {
    const { method, target: path, fields } = exchange.head;
    if (method !== "GET" && method !== "HEAD") {
      return await refuse(exchange, 405, "UNSUPPORTED", "This is a mirror to pull from", [["Allow", "GET, HEAD"]]);
    }
    const target = registryTarget(path, fields, this.config);
    if (target.isNamed && !isListed(target.url, this.config.whiteList)) {
      return await refuse(exchange, 403, "DENIED", `${target.url.host} is not in proxy.whiteList`);
    }
    if (this.deps.isOwn(target.url)) {
      return await refuse(exchange, 508, "UNAVAILABLE", `The registry ${target.url.host} is this proxy itself`);
    }
    const extra: Field[] = target.namespace === null ? [] : [["OCI-Namespace", target.namespace]];
    // Who may list tags may not yet pull: only manifests and blobs tell.
    const scope = isContent(target) ? scopeOf(target) : null;
    const digest = target.digest === null ? null : parseDigest(target.digest);
    const passage: Passage = { url: target.url, scope, extra, isIdentity: true, digest };
    const rule = this.config.rules.find(({ regx }) => regx.test(target.url.href));
    const isShared = method === "GET" && target.kind === "blob" && target.digest !== null && rule?.direct !== true;
    const read = target.isNamedByPath && scope !== null ? { scope, url: target.url, fields } : null;
    if (read !== null) exchange.askWith(this.deps.strangers.known(read));
    const afterRefusal = read === null ? null : () => this.deps.strangers.find(read, exchange.signal);
    if (!isShared || scope === null) return await this.#pass(exchange, target, { ...passage, afterRefusal });
    await this.deps.shared.serve(exchange, {
      url: target.url,
      scope,
      digest: target.digest,
      fields: extra,
      afterRefusal,
      ...this.#identity(exchange),
    });
  }

  #identity({ head }: ClientExchange): { filter: string; tag: string } {
    return {
      filter: override(head.fields, "filter") ?? this.config.defaultFilter,
      tag: override(head.fields, "tag") ?? this.config.defaultTag,
    };
  }

  async #pass(exchange: ClientExchange, target: RegistryTarget, passage: MirrorPassage): Promise<void> {
    let answer: OriginAnswer;
    try {
      answer = await this.#ask(exchange, passage);
    } catch (error) {
      if (exchange.signal.aborted || !(error instanceof LacewingError)) throw error;
      if (await this.#standIn(exchange, target, passage)) return;
      throw error;
    }
    using owned = answer;
    const isAway = [502, 503, 504].includes(owned.head.status);
    if (isAway && target.kind === "manifest" && await this.#standIn(exchange, target, passage)) return;
    await this.deps.pass.give(exchange, passage, owned);
  }

  async #ask(exchange: ClientExchange, passage: MirrorPassage): Promise<OriginAnswer> {
    const answer = await this.deps.pass.ask(exchange, passage);
    if (answer.head.status !== 401 || passage.afterRefusal === null) return answer;
    const fields = await passage.afterRefusal().catch((error) => {
      answer[Symbol.dispose]();
      throw error;
    });
    if (fields === null) return answer;
    answer[Symbol.dispose]();
    exchange.askWith(fields);
    return await this.deps.pass.ask(exchange, passage);
  }

  /** Answers in the place of a registry that is away, where that is possible. */
  async #standIn(exchange: ClientExchange, target: RegistryTarget, { extra }: Passage): Promise<boolean> {
    // Nobody knows yet which registry a ping without a name is for: the next request may name another one.
    if (target.kind === "ping" && !target.isNamed) {
      await exchange.send(200, [["Content-Type", "application/json"], API_VERSION], "{}");
      return true;
    }
    if (target.kind !== "manifest" || target.digest === null) return false;
    const { access } = this.deps;
    const scope = scopeOf(target);
    if (access !== null && !access.isKnown({ scope, fields: whoAsks(exchange.head.fields) })) return false;
    const bytes = await this.#storedManifest(exchange, target);
    const type = bytes === null ? null : manifestMediaType(bytes);
    if (bytes === null || type === null) return false;
    this.deps.log.info("a stored manifest stands in for its registry", { url: target.url.href });
    const digest: Field[] = [["Docker-Content-Digest", target.digest], ["ETag", `"${target.digest}"`]];
    await exchange.send(200, [["Content-Type", type], ...digest, API_VERSION, ...extra], bytes);
    return true;
  }

  async #storedManifest(exchange: ClientExchange, { url, digest }: RegistryTarget): Promise<Uint8Array | null> {
    try {
      await using run = this.deps.tasks.start({
        url: url.href,
        headers: [],
        ...this.#identity(exchange),
        digest: digest === null ? null : parseDigest(digest),
        range: null,
        disableBackSource: true,
        rateLimitBytesPerSecond: 0,
      }, { signal: AbortSignal.any([exchange.signal, AbortSignal.timeout(STORED_TIMEOUT_MS)]) });
      if ((await run.opened).contentLength > MANIFEST_LENGTH_MAX) return null;
      const parts: Uint8Array[] = [];
      for await (const part of run.read()) parts.push(part);
      return new Uint8Array(await new Blob(parts as Uint8Array<ArrayBuffer>[]).arrayBuffer());
    } catch (error) {
      exchange.signal.throwIfAborted();
      this.deps.log.debug("no stored manifest", { error });
      return null;
    }
  }
}

function isContent({ kind, repository }: RegistryTarget): boolean {
  return repository !== "" && (kind === "blob" || kind === "manifest");
}

function scopeOf({ url, repository }: RegistryTarget): string {
  return `${url.origin} ${repository}`;
}

const API_VERSION: Field = ["Docker-Distribution-Api-Version", "registry/2.0"];

async function refuse(
  exchange: ClientExchange,
  status: number,
  code: string,
  message: string,
  extra: readonly Field[] = [],
): Promise<void> {
  const { fields, body } = refusal(status, code, message, extra);
  await exchange.send(status, fields, body);
}
