/**
 * The manager's HTTP app: what every request passes (guards, authentication,
 * body bound, metrics), then one route file a resource. Knows no sockets, so
 * that tests call `app.request()`.
 */
import { type Context, type MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { routePath } from "hono/route";
import type { Clock } from "../peer/core/clock.ts";
import { LacewingError } from "../peer/core/errors.ts";
import type { Logger } from "../peer/core/log.ts";
import { SCHEDULER_PATH } from "../peer/core/wire/scheduler.ts";
import { allows, isLocalName, isOwnOrigin, neededScopes } from "./auth/access.ts";
import type { Authenticator } from "./auth/authenticator.ts";
import type { JobService } from "./jobs/service.ts";
import type { JobWatch } from "./jobs/watch.ts";
import type { Metrics } from "./metrics.ts";
import { describeApi } from "./openapi.ts";
import { clusterRoutes } from "./routes/clusters.ts";
import { type Api, type ApiEnv, newApi } from "./routes/env.ts";
import { jobRoutes } from "./routes/jobs.ts";
import { onError, problem } from "./routes/problem.ts";
import { swarmRoutes } from "./routes/swarm.ts";
import { systemRoutes } from "./routes/system.ts";
import { tokenRoutes } from "./routes/tokens.ts";
import type { Schedulers } from "./scheduler/schedulers.ts";
import type { Store } from "./store/store.ts";

/** Bytes of a request's body. */
export const BODY_LENGTH_MAX = 1024 * 1024;

export interface AppDeps {
  readonly store: Store;
  readonly jobs: JobService;
  readonly watch: JobWatch;
  readonly schedulers: Schedulers;
  /** Takes a host's WebSocket. */
  readonly upgrade: (request: Request, remoteIp: string) => Response;
  /** Null: anyone may call (loopback, or switched off on purpose). */
  readonly authenticator: Authenticator | null;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly log: Logger;
  /** Aborts when the manager stops. */
  readonly stopping: AbortSignal;
}

export interface AppConfig {
  /** Whether the listener is on loopback; then requests must name it as local. */
  readonly loopback: boolean;
  /** The scheduler's WebSocket address as a host reaches it, from the URL it asked. */
  readonly schedulerUrl: (requestUrl: string) => string;
  readonly version: string;
}

export function createApp(deps: AppDeps, config: AppConfig): Api {
  const { store, log } = deps;
  const app = newApi();
  app.onError(onError(log));
  app.use(measure(deps.metrics));
  app.use(guard(config));
  app.use(authenticate(deps.authenticator, log));
  app.use(bodyLimit({
    maxSize: BODY_LENGTH_MAX,
    onError: () => {
      throw new LacewingError("too_large", `Cannot read the body: it has more than ${BODY_LENGTH_MAX} bytes`);
    },
  }));
  app.get(SCHEDULER_PATH, (c) => {
    if (c.req.header("upgrade")?.toLowerCase() !== "websocket") {
      throw new LacewingError("bad_request", "Cannot join: want a WebSocket, with the header Upgrade: websocket");
    }
    return deps.upgrade(c.req.raw, c.env?.remoteIp ?? "");
  });
  app.route("/", systemRoutes({ ping: store.ping, isRunning: () => !deps.stopping.aborted, metrics: deps.metrics }));
  app.route("/api/v1/jobs", jobRoutes(deps));
  app.route("/api/v1/scheduler-clusters", clusterRoutes(store));
  app.route("/api/v1/personal-access-tokens", tokenRoutes(store));
  app.route("/api/v1", swarmRoutes({ schedulers: deps.schedulers, schedulerUrl: config.schedulerUrl }));
  describeApi(app, config.version);
  app.notFound((c) => notFound(app, c));
  return app;
}

/** 404, or what the path does allow: 405 with `Allow`, and the answer to OPTIONS. */
function notFound(app: Api, c: Context): Response {
  const methods = new Set(
    app.routes.filter(({ method, path }) => method !== "ALL" && matches(path, c.req.path)).map(({ method }) => method),
  );
  if (methods.size === 0) {
    return problem(c, { code: "not_found", detail: `Cannot find ${c.req.path}: there is nothing at this path` });
  }
  if (methods.has("GET")) methods.add("HEAD");
  const allow = [...methods, "OPTIONS"].sort().join(", ");
  c.header("Allow", allow);
  if (c.req.method === "OPTIONS") return c.body(null, 204);
  return problem(c, {
    code: "method_not_allowed",
    detail: `Cannot ${c.req.method} ${c.req.path}: allowed are ${allow}`,
  });
}

function matches(pattern: string, path: string): boolean {
  const [wanted, given] = [pattern.split("/"), path.split("/")];
  return wanted.length === given.length &&
    wanted.every((part, at) => part.startsWith(":") ? given[at] !== "" : part === given[at]);
}

/** Keeps out pages of other origins, and names that only pretend to be this machine. */
function guard({ loopback }: AppConfig): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    c.header("X-Content-Type-Options", "nosniff");
    const { hostname, host } = new URL(c.req.url);
    if (loopback && !isLocalName(hostname)) {
      throw new LacewingError(
        "forbidden",
        `Cannot answer as ${hostname}: this manager listens on loopback; ask localhost`,
      );
    }
    const reads = ["GET", "HEAD", "OPTIONS"].includes(c.req.method) && c.req.header("upgrade") === undefined;
    if (!reads && !isOwnOrigin(c.req.header("origin"), host)) {
      throw new LacewingError("forbidden", "Cannot take the request: a page of another origin sent it");
    }
    await next();
  };
}

function authenticate(authenticator: Authenticator | null, log: Logger): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    const needed = neededScopes(c.req.method, c.req.path);
    const authorization = c.req.header("authorization");
    // A host may show its join token in its first message instead; the scheduler checks that.
    const later = c.req.path === SCHEDULER_PATH && authorization === undefined;
    if (authenticator === null || needed === null || later) return await next();
    const remoteIp = c.env?.remoteIp ?? "";
    const waitMs = authenticator.waitMs(remoteIp);
    if (waitMs > 0) {
      return problem(c, {
        code: "too_many_requests",
        detail: "Cannot check the token: too many wrong ones came from this address",
        retryAfterSeconds: Math.ceil(waitMs / 1000),
      });
    }
    const caller = await authenticator.authenticate(authorization, remoteIp);
    if (!allows(caller, needed)) {
      log.warn("request refused", { caller: caller.name, path: c.req.path });
      c.header("WWW-Authenticate", `Bearer realm="lacewing", error="insufficient_scope", scope="${needed.join(" ")}"`);
      throw new LacewingError(
        "forbidden",
        `Cannot do this: the token's scopes are ${caller.scopes.join(", ")}, want ${needed.join(" or ")}`,
      );
    }
    await next();
  };
}

function measure(metrics: Metrics): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    const startedAtMs = performance.now();
    await next();
    const route = routePath(c, -1);
    const labels = { method: c.req.method, route: route.includes("*") ? "other" : route, status: String(c.res.status) };
    metrics.request(labels, (performance.now() - startedAtMs) / 1000);
  };
}
