/**
 * The head of the API's OpenAPI 3.1 document; paths and schemas come from the
 * routes themselves, so that the document is what is served.
 */
import type { Api } from "./routes/env.ts";

/** Registers the head's parts on the app and answers `/openapi.json`. */
export function describeApi(api: Api, version: string): void {
  api.openAPIRegistry.registerComponent("securitySchemes", "token", {
    type: "http",
    scheme: "bearer",
    description: "Admin token, personal access token, or (hosts) join token. Not needed on a loopback address.",
  });
  const head = {
    openapi: "3.1.0",
    info: {
      title: "Lacewing manager",
      version,
      description: "Preheats content onto the hosts of scheduler clusters. Errors are RFC 9457 problems.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    security: [{ token: [] }],
  };
  let document: string | null = null;
  api.get("/openapi.json", (c) => {
    document ??= JSON.stringify(api.getOpenAPI31Document(head));
    return c.body(document, 200, { "Content-Type": "application/json" });
  });
}
