/** The whole app over a store in memory and a fake swarm, called without sockets. */
import { createApp } from "../../../../manager/app.ts";
import { Authenticator } from "../../../../manager/auth/authenticator.ts";
import { createMetrics } from "../../../../manager/metrics.ts";
import type { Api } from "../../../../manager/routes/env.ts";
import { createLogger } from "../../../../peer/core/log.ts";
import { type Bench, openBench } from "../jobs/bench.ts";

export const ADMIN_TOKEN = "admin-token-of-the-tests";
export const JOIN_TOKEN = "join-token-of-the-tests";

export interface ApiBench extends Bench {
  readonly app: Api;
  readonly logged: string[];
  /** Aborts as a stop does. */
  readonly stopping: AbortController;
  request(method: string, path: string, init?: RequestOptions): Promise<Response>;
}

export interface RequestOptions {
  readonly json?: unknown;
  readonly body?: BodyInit;
  readonly headers?: Record<string, string>;
  readonly remoteIp?: string;
}

export async function openApi(
  { auth = false, loopback = !auth, running = true }: { auth?: boolean; loopback?: boolean; running?: boolean } = {},
): Promise<ApiBench> {
  const bench = await openBench({ running });
  const stopping = new AbortController();
  const logged: string[] = [];
  const { store, schedulers } = bench;
  const app = createApp({
    ...bench,
    jobs: bench.service,
    upgrade: (_request, remoteIp) => new Response(`upgraded ${remoteIp}`),
    authenticator: auth
      ? new Authenticator({ tokens: store.tokens, now: () => 1_900_000_000_000 + bench.clock.nowMs() }, {
        adminToken: ADMIN_TOKEN,
        joinToken: JOIN_TOKEN,
      })
      : null,
    metrics: createMetrics({ store, schedulers, version: "1.2.3" }),
    log: createLogger((line) => logged.push(line)),
    stopping: stopping.signal,
  }, { loopback, schedulerUrl: (url) => new URL("/ws", url).href, version: "1.2.3" });
  return {
    ...bench,
    app,
    logged,
    stopping,
    async request(method, path, { json, body, headers, remoteIp = "127.0.0.1" } = {}) {
      const type: Record<string, string> = json === undefined ? {} : { "Content-Type": "application/json" };
      const init: RequestInit = { method, headers: { ...type, ...headers } };
      if (json !== undefined || body !== undefined) init.body = body ?? JSON.stringify(json);
      return await app.request(path.startsWith("http") ? path : `http://127.0.0.1:8080${path}`, init, { remoteIp });
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await bench[Symbol.asyncDispose]();
    },
  };
}

export const bearer = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } });
