/**
 * What every route of the API is given: the type of the Hono app, and a maker
 * of resource apps that all refuse invalid input in the same words.
 */
import { OpenAPIHono } from "@hono/zod-openapi";
import { describeIssues } from "../../peer/core/config.ts";
import type { Caller } from "../auth/access.ts";
import { problem } from "./problem.ts";

export interface ApiEnv {
  Bindings: {
    /** Address of the other end; empty where there is none (tests). */
    readonly remoteIp?: string;
  };
  Variables: { caller: Caller };
}

export type Api = OpenAPIHono<ApiEnv>;

/** An empty resource app; invalid input is answered with 422 and names each path. */
export function newApi(): Api {
  return new OpenAPIHono<ApiEnv>({
    defaultHook: (result, c) => {
      if (result.success) return;
      const errors = describeIssues(result.error.issues as never);
      const text = errors.map(({ path, message }) => `${path || "(body)"}: ${message}`).join("; ");
      return problem(c, { code: "invalid", detail: `Cannot accept the request: ${text}`, errors });
    },
  });
}
