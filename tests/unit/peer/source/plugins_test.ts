/** Plug-ins that work, and the many ways in which they do not. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { SourcePlugins } from "../../../../peer/source/plugins.ts";
import { SourceRegistry } from "../../../../peer/source/sources.ts";

const ECHO = await Deno.readTextFile(new URL("../../../testutil/echo_plugin.ts", import.meta.url));
const { signal } = new AbortController();

async function withFolder(
  files: Record<string, string>,
  run: (plugins: SourcePlugins, folder: string) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    for (const [name, text] of Object.entries(files)) await Deno.writeTextFile(`${folder}/${name}`, text);
    await using plugins = new SourcePlugins(folder, ["http", "https"]);
    await run(plugins, folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function read(plugins: SourcePlugins, url: string, range: { offset: number; length: number } | null = null) {
  await using registry = new SourceRegistry(new Map(), plugins);
  await using body = await registry.open({ url, headers: [], range }, { signal });
  let text = "";
  for (let bytes = await body.read(); bytes !== null; bytes = await body.read()) {
    text += new TextDecoder().decode(bytes);
  }
  return { text, length: body.contentLength };
}

Deno.test("a plug-in's source is read like any other", () =>
  withFolder({ "echo.ts": ECHO }, async (plugins) => {
    assertEquals(await read(plugins, "echo://hello?times=2"), { text: "hellohello", length: 10 });
    assertEquals(await read(plugins, "echo://hello", { offset: 1, length: 2 }), { text: "el", length: 5 });
  }));

Deno.test("files() lists by scheme: TypeScript first, nothing that is built in, nothing else", () =>
  withFolder({
    "echo.ts": "",
    "echo.js": "",
    "b+c.js": "",
    "http.ts": "",
    "README.md": "",
    "Upper.ts": "",
    "9.ts": "",
    ".ts": "",
    "a.d.tsx": "",
  }, async (plugins, folder) => {
    await Deno.mkdir(`${folder}/folder.ts`);
    assertEquals(await plugins.files(), [
      { scheme: "b+c", path: `${folder}/b+c.js` },
      { scheme: "echo", path: `${folder}/echo.ts` },
    ]);
  }));

Deno.test("a folder that is not there has no plug-ins, and one that is a file is told", async () => {
  await using none = new SourcePlugins("/none/plugins", []);
  assertEquals([await none.files(), await none.find("echo")], [[], null]);
  const path = await Deno.makeTempFile();
  await using wrong = new SourcePlugins(path, []);
  assertEquals((await assertRejects(() => wrong.files(), LacewingError)).code, "file");
  await Deno.remove(path);
});

const BAD: [string, string, string][] = [
  ["does not parse", "export function {", "cannot be loaded"],
  ["throws when it is loaded", 'throw new Error("no luck");', "no luck"],
  ["imports what is not there", 'import "./none.ts";', "cannot be loaded"],
  ["exports nothing", "export {};", "createSource"],
  ["exports something else", "export const createSource = 1;", "createSource"],
  ["fails to make a source", 'export function createSource() { throw new Error("no key"); }', "no key"],
  ["gives nothing", "export function createSource() {}", "no function open"],
  ["gives no source", "export function createSource() { return {}; }", "no function open"],
];
for (const [claim, text, reason] of BAD) {
  Deno.test(`a plug-in that ${claim} is config_invalid, names the file, and hurts no other`, () =>
    withFolder({ "bad.ts": text, "echo.ts": ECHO }, async (plugins, folder) => {
      const error = await assertRejects(() => read(plugins, "bad://x"), LacewingError);
      assertEquals(error.code, "config_invalid");
      for (const word of [`${folder}/bad.ts`, reason]) assert(error.message.includes(word), error.message);
      assertEquals((await read(plugins, "echo://a")).text, "a");
    }));
}

Deno.test("a mended plug-in is loaded without a restart", () =>
  withFolder({ "echo.ts": "export const x = 1;" }, async (plugins, folder) => {
    await assertRejects(() => read(plugins, "echo://a"), LacewingError);
    await Deno.writeTextFile(`${folder}/echo.ts`, ECHO);
    await Deno.utime(`${folder}/echo.ts`, new Date(), new Date(Date.now() + 5000));
    assertEquals((await read(plugins, "echo://a")).text, "a");
  }));

Deno.test("a file or folder that others may write is not run", () =>
  withFolder({ "echo.ts": `${ECHO}\nglobalThis.name = "was run";` }, async (plugins, folder) => {
    for (const [path, mode] of [[`${folder}/echo.ts`, 0o666], [folder, 0o777]] as const) {
      await Deno.chmod(path, mode);
      const error = await assertRejects(() => read(plugins, "echo://a"), LacewingError);
      assert(error.message.includes("others may write"), error.message);
      await Deno.chmod(path, 0o700);
    }
    assert((globalThis as { name?: string }).name !== "was run");
  }));

Deno.test("codes of a plug-in's errors count, others are source_failed", () =>
  withFolder({ "echo.ts": ECHO }, async (plugins) => {
    const codeOf = async (url: string) => (await assertRejects(() => read(plugins, url), LacewingError)).code;
    assertEquals([await codeOf("echo://missing"), await codeOf("echo://broken")], [
      "source_not_found",
      "source_failed",
    ]);
  }));

const BODIES: [string, string, string][] = [
  ["nothing", "null", "body"],
  ["no length", "{ ...right, contentLength: undefined }", "contentLength"],
  ["a length in text", '{ ...right, contentLength: "5" }', "contentLength"],
  ["no word of ranges", "{ ...right, ranges: undefined }", "ranges"],
  ["no version", "{ ...right, version: null }", "version"],
  ["a negative offset", "{ ...right, offset: -1 }", "offset"],
  ["half a length", "{ ...right, length: 1.5 }", "length"],
  ["no reader", "{ ...right, read: 1 }", "read"],
  ["text instead of bytes", '{ ...right, read: () => Promise.resolve("x") }', "Uint8Array"],
];
for (const [claim, body, word] of BODIES) {
  Deno.test(`a body with ${claim} is source_failed`, () =>
    withFolder({
      "x.js":
        `const right = { contentLength: 5, ranges: true, version: {}, offset: 0, length: 5, read: async () => null };
        export const createSource = () => ({ open: () => Promise.resolve(${body}) });`,
    }, async (plugins) => {
      const error = await assertRejects(() => read(plugins, "x://y"), LacewingError);
      assertEquals([error.code, error.message.includes(word)], ["source_failed", true], error.message);
    }));
}

Deno.test("an unknown scheme is told with those of the plug-ins", () =>
  withFolder({ "echo.ts": ECHO }, async (plugins) => {
    const error = await assertRejects(() => read(plugins, "ehco://a"), LacewingError);
    assertEquals([error.code, error.message.includes("echo")], ["usage", true]);
  }));

Deno.test("sources of plug-ins are closed with them, and list what they can", () =>
  withFolder({
    "x.js": `export const createSource = () => ({
      open: () => Promise.reject(new Error()),
      list: async ({ url }) => ({ listed: url }),
      [Symbol.asyncDispose]: async () => { globalThis.closedX = true; },
    });`,
  }, async (plugins) => {
    const registry = new SourceRegistry(new Map(), plugins);
    const listing: unknown = await registry.list({ url: "x://a/" } as never, { signal });
    assertEquals(listing, { listed: "x://a/" });
    await plugins[Symbol.asyncDispose]();
    assertEquals((globalThis as { closedX?: boolean }).closedX, true);
  }));
