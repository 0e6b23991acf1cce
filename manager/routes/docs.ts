/**
 * Swagger UI at `/docs`, from the files of its npm package on this machine:
 * nothing is loaded from elsewhere. Where the package's files are not part of
 * the program (a single-file bundle), it says so and names `/openapi.json`.
 */
import type { Context } from "hono";
import { LacewingError } from "../../peer/core/errors.ts";

const CONTENT_TYPES: Record<string, string> = {
  "swagger-ui.css": "text/css; charset=utf-8",
  "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
  "favicon-32x32.png": "image/png",
};

/** Relative names, so that it works below any prefix of a reverse proxy. */
const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Lacewing manager API</title>
<link rel="icon" type="image/png" href="docs/favicon-32x32.png">
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
  if (file === "start.js") return c.body(START, 200, { "Content-Type": "text/javascript; charset=utf-8" });
  const contentType = CONTENT_TYPES[file];
  if (contentType === undefined) {
    throw new LacewingError("not_found", `Cannot find /docs/${file}: the page has no such file`);
  }
  return c.body(await packageFile(file), 200, { "Content-Type": contentType, "Cache-Control": "max-age=3600" });
}

async function packageFile(name: string): Promise<Uint8Array<ArrayBuffer>> {
  try {
    const { default: folder } = await import("swagger-ui-dist/absolute-path.js");
    return await Deno.readFile(`${folder()}/${name}`);
  } catch (cause) {
    throw new LacewingError(
      "unavailable",
      "Cannot show the page: Swagger UI's files are not part of this executable; /openapi.json has the description",
      { cause },
    );
  }
}
