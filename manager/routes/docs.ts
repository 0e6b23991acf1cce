/**
 * Swagger UI at `/docs`. Its files are imported as text, so that they are part
 * of bundles and executables, and read when somebody first asks: nothing is
 * loaded from elsewhere.
 */
import type { Context } from "hono";
import { LacewingError } from "../../peer/core/errors.ts";

/** What the page loads: content type and the way to the text. */
const FILES: Record<string, readonly [string, () => Promise<string>]> = {
  "swagger-ui.css": [
    "text/css; charset=utf-8",
    async () => (await import("swagger-ui-dist/swagger-ui.css", { with: { type: "text" } })).default,
  ],
  "swagger-ui-bundle.js": [
    "text/javascript; charset=utf-8",
    async () => (await import("swagger-ui-dist/swagger-ui-bundle.js", { with: { type: "text" } })).default,
  ],
  "start.js": ["text/javascript; charset=utf-8", () => Promise.resolve(START)],
};

/** Relative names, so that it works below any prefix of a reverse proxy. */
const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Lacewing manager API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`;
const START = `SwaggerUIBundle({ url: "openapi.json", dom_id: "#ui", deepLinking: true, validatorUrl: null });\n`;
const POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'";

/** @param file name below `/docs/`; empty is the page itself */
export async function serveDocs(c: Context, file: string): Promise<Response> {
  c.header("Content-Security-Policy", POLICY);
  if (file === "") return c.html(PAGE);
  const known = Object.hasOwn(FILES, file) ? FILES[file] : undefined;
  if (known === undefined) throw new LacewingError("not_found", `Cannot find /docs/${file}: the page has no such file`);
  const [contentType, read] = known;
  return c.body(await read(), 200, { "Content-Type": contentType, "Cache-Control": "max-age=3600" });
}
