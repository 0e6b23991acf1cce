/** Health, metrics and the API's description of itself. */
import { createRoute, z } from "@hono/zod-openapi";
import { LacewingError } from "../../peer/core/errors.ts";
import type { Metrics } from "../metrics.ts";
import { type Api, newApi } from "./env.ts";
import { json, problems } from "./schemas.ts";
import { serveDocs } from "./docs.ts";

const tags = ["system"];
const text = (description: string) => ({ description, content: { "text/plain": { schema: z.string() } } });

const healthy = createRoute({
  method: "get",
  path: "/healthy",
  tags,
  summary: "Whether the process lives",
  security: [],
  responses: { 200: text("OK") },
});
const readyz = createRoute({
  method: "get",
  path: "/readyz",
  tags,
  summary: "Whether the manager can serve",
  security: [],
  responses: { 200: json(z.object({ status: z.literal("ready") }), "It can"), ...problems() },
});
const metricsRoute = createRoute({
  method: "get",
  path: "/metrics",
  tags,
  summary: "Prometheus metrics",
  responses: { 200: text("Exposition format"), ...problems() },
});

export interface SystemDeps {
  /** Throws when the database does not answer. */
  readonly ping: () => Promise<void>;
  readonly isRunning: () => boolean;
  readonly metrics: Metrics;
}

export function systemRoutes({ ping, isRunning, metrics }: SystemDeps): Api {
  const api = newApi();
  api.openapi(healthy, (c) => c.text("OK", 200));
  api.openapi(readyz, async (c) => {
    try {
      await ping();
    } catch (cause) {
      throw new LacewingError("unavailable", "Cannot serve: the database does not answer", { cause });
    }
    if (!isRunning()) throw new LacewingError("unavailable", "Cannot serve: the manager is stopping");
    return c.json({ status: "ready" as const }, 200);
  });
  api.openapi(metricsRoute, async (c) => {
    const { text, contentType } = await metrics.read();
    return c.text(text, 200, { "Content-Type": contentType });
  });
  api.get("/docs", (c) => serveDocs(c, ""));
  api.get("/docs/:file", (c) => serveDocs(c, c.req.param("file")));
  return api;
}
