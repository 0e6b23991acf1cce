/**
 * Passes a request on to its origin and the answer back, untouched: status,
 * fields and bytes. Tells `Access` what the origin said of this client. A body
 * whose digest is known is checked on the way.
 */
import type { Digest } from "../core/digest.ts";
import type { Access } from "./access.ts";
import type { ClientExchange } from "./client_exchange.ts";
import type { Field } from "./http_message.ts";
import type { OriginAnswer, OriginClient } from "./origin_client.ts";
import { passedOn, whoAsks } from "./origin_fields.ts";
import { verifiedBody } from "./verified_body.ts";

export interface Passage {
  readonly url: URL;
  /** What the origin's answer says of this client's rights; null says nothing. */
  readonly scope: string | null;
  /** Further fields of the answer. */
  readonly extra: readonly Field[];
  /** Whether the origin is asked for uncompressed bytes, whatever the client takes. */
  readonly isIdentity: boolean;
  /** Digest of the whole body, or null. */
  readonly digest: Digest | null;
}

export class PassThrough {
  constructor(private readonly client: OriginClient, private readonly access: Access | null) {}

  async serve(exchange: ClientExchange, passage: Passage): Promise<void> {
    using answer = await this.ask(exchange, passage);
    await this.give(exchange, passage, answer);
  }

  /** The origin's answer, of which nothing was passed on yet. */
  async ask(exchange: ClientExchange, { url, scope, isIdentity }: Passage): Promise<OriginAnswer> {
    const { method, fields } = exchange.head;
    if (exchange.body !== null) await exchange.letBodyCome();
    const answer = await this.client.send(
      { method, url, fields: passedOn(fields, { isIdentity }), body: exchange.body },
      exchange.signal,
    );
    if (scope !== null) this.access?.learn({ scope, fields: whoAsks(fields) }, answer.head.status);
    return answer;
  }

  async give(exchange: ClientExchange, { extra, digest }: Passage, answer: OriginAnswer): Promise<void> {
    const { head, framing } = answer;
    if (head.status === 416) {
      // Distribution 2.8 announces the blob's size and sends an error's text: who believes it waits for ever.
      const fields = head.fields.filter(([name]) => /^(?:content-range|docker-|accept-ranges)/i.test(name));
      return await exchange.send(416, [...fields, ...extra]);
    }
    const isChecked = digest !== null && head.status === 200 && exchange.head.method === "GET";
    const length = framing.kind === "length" ? framing.length : null;
    await exchange.pass(answer, { extra, ...(isChecked ? { body: verifiedBody(answer, { digest, length }) } : {}) });
  }
}
