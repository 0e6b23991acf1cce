/** Whole folders over real processes: what is taken, what is left alone, what fails, and servers that lie. */
// covers: cli/recursive/tree.ts, cli/recursive/tree_files.ts, cli/fetch_content.ts
import { assert, assertEquals } from "@std/assert";
import { Child } from "../testutil/child.ts";
import { isInstalled, SERVERS } from "../testutil/folder_servers.ts";
import { Place } from "../testutil/place.ts";
import { denoRun, runClient, spawnDaemon } from "../testutil/process.ts";
import { makeTree, treeOf } from "../testutil/tree.ts";

/** A server whose folders are pages of links, or JSON, and whose files say their own path. */
class LinkServer implements AsyncDisposable {
  readonly seen: { path: string; range: string | null; headers: Headers }[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  constructor(answer: (path: string, request: Request) => Response | readonly string[] | null | Promise<Response>) {
    this.#server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
      const url = new URL(request.url);
      const path = url.pathname + url.search;
      this.seen.push({ path, range: request.headers.get("range"), headers: new Headers(request.headers) });
      const found = await answer(path, request);
      if (found === null) return new Response(`content of ${path}`, { headers: DATED });
      return found instanceof Response ? found : page(found);
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

const DATED = { "last-modified": "Tue, 05 Mar 2024 06:07:08 GMT", "content-type": "application/octet-stream" };

function page(hrefs: readonly string[]): Response {
  const links = hrefs.map((href) => `<a href="${href.replaceAll("&", "&amp;").replaceAll('"', "&quot;")}">x</a>`);
  return new Response(`<!doctype html>${links.join("\n")}`, { headers: { "content-type": "text/html" } });
}

Deno.test("recursive download refuses and names what a lying server would put outside of the folder", async () => {
  await using place = new Place();
  const hrefs = [
    ...[
      "good.txt",
      "..%2f..%2fevil",
      "%2fevil",
      "..%5c..%5cevil",
      "./C:%5cevil",
      "./d:evil",
      "nul%00evil",
      "line%0aevil",
    ],
    ...["../evil", "../../evil", "/../evil", "%2e%2e/evil", "//evil.test/a/evil", "file:///evil", "\\..\\evil"],
  ];
  await using server = new LinkServer((path) => path === "/a/" ? hrefs : null);
  const { code, stderr } = await place.direct("-r", `${server.url}/a/`, "-O", "deep/er/out");
  assertEquals(code, 11, stderr);
  assertEquals(Object.keys(await treeOf(place.path("out"))), [
    "deep/",
    "deep/er/",
    "deep/er/out/",
    "deep/er/out/good.txt",
  ]);
  const named = stderr.split("\n").filter((line) => line.includes("Cannot save it"));
  assertEquals(named.length, 7, stderr);
  assert(/\n1 file, .* 7 failed\nlacewing: Cannot take all: 7 failures, named above\n$/.test(stderr), stderr);
  // Besides the folder only the good file was asked for.
  assertEquals([...new Set(server.seen.map(({ path }) => path))], ["/a/", "/a/good.txt"]);
});

Deno.test("recursive download refuses and names raw names of a lying JSON listing", async () => {
  await using place = new Place();
  const names = ["../evil", "/etc/evil", "..", "a/b", "", "nul\0evil", "good \u001b[2J.txt"];
  const items = [...names, "good.txt"].map((name) => ({ name, type: "file", size: 1 }));
  await using server = new LinkServer((path) => path === "/a/" ? Response.json(items) : null);
  const { code, stderr } = await place.direct("-r", `${server.url}/a/`, "-O", "out");
  assertEquals([code, Object.keys(await treeOf(place.path("out")))], [11, ["out/", "out/good.txt"]]);
  assertEquals(stderr.split("\n").filter((line) => line.includes("Cannot save it")).length, 7, stderr);
  assert(/^[\x20-\x7e\n]*$/.test(stderr), "no control character reaches the terminal");
});

Deno.test("recursive download follows no symbolic link in the output folder, and says what is in the way", async () => {
  await using place = new Place();
  const pages: Record<string, string[]> = {
    "/": ["link/", "file/", "folder", "same", "good"],
    "/link/": ["x"],
    "/file/": ["y"],
  };
  await using server = new LinkServer((path) => pages[path] ?? null);
  Deno.mkdirSync(place.path("outside"));
  Deno.mkdirSync(place.path("out/t/folder"), { recursive: true });
  Deno.writeTextFileSync(place.path("out/t/file"), "mine");
  Deno.writeTextFileSync(place.path("outside/target"), "mine");
  Deno.symlinkSync(place.path("outside"), place.path("out/t/link"));
  Deno.symlinkSync(place.path("outside/target"), place.path("out/t/same"));
  const { code, stderr } = await place.direct("-r", server.url, "-O", "t");
  assertEquals(code, 11, stderr);
  assertEquals([...Deno.readDirSync(place.path("outside"))].map(({ name }) => name), ["target"]);
  assertEquals(Deno.readTextFileSync(place.path("outside/target")), "mine");
  assertEquals(Deno.readTextFileSync(place.path("out/t/same")), "content of /same");
  assertEquals(Deno.readTextFileSync(place.path("out/t/file")), "mine");
  assertEquals(Deno.readTextFileSync(place.path("out/t/good")), "content of /good");
  for (const text of ["symbolic link, which is not followed", "a file is in its place", "a folder is in its place"]) {
    assert(stderr.includes(text), stderr);
  }
});

Deno.test("recursive download ends where a server makes up folders for ever", async () => {
  await using place = new Place();
  await using server = new LinkServer((path) => path.endsWith("/") ? ["f", "deeper/"] : null);
  const usual = await place.direct("-r", "--list", server.url);
  assertEquals([usual.code, usual.stdout.split("\n").length - 1, usual.stderr], [0, 5, ""]);
  const unlimited = await place.direct("-r", "--list", "--level", "0", server.url);
  assertEquals([unlimited.code, unlimited.stdout.split("\n").length - 1], [8, 100]);
  assert(unlimited.stderr.includes("Cannot go deeper than 100 folders"), unlimited.stderr);
});

Deno.test("recursive download refuses a folder that redirects elsewhere, and sends its headers nowhere else", async () => {
  await using place = new Place();
  await using other = new LinkServer((path) => path.endsWith("/") ? ["stolen"] : null);
  await using server: LinkServer = new LinkServer((path) => {
    if (path === "/a/") return ["b/", "c/", "f"];
    if (path === "/a/b/") return Response.redirect(`${other.url}/a/b/`, 302);
    return path === "/a/c/" ? Response.redirect(`${server.url}/`, 302) : null;
  });
  const header = ["-H", "Authorization: Bearer secret", "-H", "X-Key: secret"];
  const { code, stderr } = await place.direct("-r", `${server.url}/a/`, "-O", "t", ...header);
  assertEquals([code, Object.keys(await treeOf(place.path("out/t")))], [15, ["f"]]);
  assertEquals(stderr.split("\n").filter((line) => line.includes("lies outside of the folder")).length, 2, stderr);
  for (const { headers } of server.seen) assertEquals(headers.get("x-key"), "secret");
  for (const { headers } of other.seen) {
    assertEquals([headers.get("x-key"), headers.get("authorization")], [null, null]);
  }
});

Deno.test("recursive download uses the URL's user info for every file, and never prints it", async () => {
  await using place = new Place();
  const wanted = `Basic ${btoa("me:pass word")}`;
  await using server = new LinkServer((path, request) => {
    if (request.headers.get("authorization") !== wanted) return new Response("no", { status: 401 });
    return path.endsWith("/") ? (path === "/" ? ["f", "d/"] : ["g"]) : null;
  });
  const url = server.url.replace("http://", "http://me:pass%20word@");
  const listed = await place.direct("-r", "--list", url);
  assertEquals([listed.code, listed.stdout], [0, `${server.url}/f\n${server.url}/d/g\n`]);
  const { code, stderr } = await place.direct("-r", url, "-O", "t");
  assertEquals([code, Object.keys(await treeOf(place.path("out/t")))], [0, ["d/", "d/g", "f"]], stderr);
  assertEquals((await place.direct("-r", server.url, "-O", "u")).code, 4);
});

Deno.test("--accept-regex, --reject-regex and --level choose files by their complete URLs", async () => {
  await using place = new Place();
  const pages: Record<string, string[]> = {
    "/": ["a.txt", "b.bin", "sub/"],
    "/sub/": ["c.txt", "d.bin", "deep/"],
    "/sub/deep/": ["e.txt"],
  };
  await using server = new LinkServer((path) => pages[path] ?? null);
  const list = async (...args: string[]) => {
    const { code, stdout, stderr } = await place.direct("-r", "-l", server.url, ...args);
    assertEquals([code, stderr], [0, ""]);
    return stdout.split("\n").slice(0, -1).map((line) => line.slice(server.url.length));
  };
  assertEquals(await list(), ["/a.txt", "/b.bin", "/sub/c.txt", "/sub/d.bin", "/sub/deep/e.txt"]);
  assertEquals(await list("--accept-regex", "\\.txt$"), ["/a.txt", "/sub/c.txt", "/sub/deep/e.txt"]);
  assertEquals(await list("--reject-regex", "/sub/"), ["/a.txt", "/b.bin"]);
  assertEquals(await list("--accept-regex", "^http://127", "--reject-regex", "bin"), [
    "/a.txt",
    "/sub/c.txt",
    "/sub/deep/e.txt",
  ]);
  assertEquals(await list("--level", "1"), ["/a.txt", "/b.bin"]);
  assertEquals(await list("--level", "2", "--accept-regex", "txt"), ["/a.txt", "/sub/c.txt"]);
  const none = await place.direct("-r", server.url, "-O", "t", "--accept-regex", "nothing");
  assertEquals([none.code, await treeOf(place.path("out/t"))], [0, {}]);
});

Deno.test("--list streams: URLs of the first folder come before the last folder answers", async () => {
  await using place = new Place();
  const gate = Promise.withResolvers<void>();
  await using server = new LinkServer(async (path) => {
    if (path === "/slow/") await gate.promise;
    return page(path === "/" ? ["first", "slow/"] : ["last"]);
  });
  const child = new Child([...denoRun("cli/main.ts"), "-r", "-l", server.url, ...place.withoutDaemon()]);
  await child.line((line) => line === `${server.url}/first`);
  gate.resolve();
  assertEquals((await child.ended).stdout, `${server.url}/first\n${server.url}/slow/last\n`);
});

Deno.test("a failing file does not stop the others, and the exit code is the worst", async () => {
  await using place = new Place();
  const status: Record<string, number> = { "/gone": 404, "/closed": 403 };
  await using server = new LinkServer((path) => {
    if (path === "/") return ["gone", "closed", "lost/", "ok"];
    if (path === "/lost/") return new Response("no", { status: 404 });
    return path in status ? new Response("no", { status: status[path] }) : null;
  });
  const { code, stderr } = await place.direct("-r", server.url, "-O", "t");
  assertEquals([code, Object.keys(await treeOf(place.path("out/t")))], [4, ["ok"]]);
  for (const name of ["gone", "closed", "lost/"]) assert(stderr.includes(`lacewing: ${server.url}/${name}: `), stderr);
  assert(stderr.includes("3 failed"), stderr);
});

for (
  const [claim, answer, code] of [
    ["404", () => new Response("no", { status: 404 }), 3],
    ["a file", () => new Response("data", { headers: DATED }), 2],
  ] as const
) {
  Deno.test(`recursive download of ${claim} ends with exit code ${code} and leaves nothing`, async () => {
    await using place = new Place();
    await using server = new LinkServer(answer);
    const result = await place.direct("-r", `${server.url}/x`, "-O", "t");
    assertEquals([result.code, result.stdout, place.outputs()], [code, "", []], result.stderr);
  });
}

Deno.test("without -O the folder has the name of the URL's last folder", async () => {
  await using place = new Place();
  await using server = new LinkServer((path) => path.endsWith("/") ? ["f"] : null);
  assertEquals((await place.direct("-r", `${server.url}/a/my%20set/`)).code, 0);
  assertEquals(Object.keys(await treeOf(place.path("out"))), ["my set/", "my set/f"]);
  assertEquals((await place.direct("-r", `${server.url}/`)).code, 0);
  assertEquals(place.outputs(), ["127.0.0.1", "my set"]);
});

Deno.test("--timeout ends a recursive download with exit code 6, and only whole files stand", async () => {
  await using place = new Place();
  await using server = new LinkServer((path) => {
    if (path === "/") return ["quick", "stuck"];
    if (path !== "/stuck") return null;
    const body = new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(10)) });
    return new Response(body, { headers: { ...DATED, "content-length": "100" } });
  });
  const { code } = await place.direct("-r", server.url, "-O", "t", "--timeout", "3s");
  assertEquals(code, 6);
  const visible = Object.keys(await treeOf(place.path("out/t"))).filter((name) => !name.startsWith("."));
  assertEquals(visible, ["quick"]);
});

Deno.test("Ctrl-C ends a recursive download with exit code 130, and the next run brings the rest", async () => {
  await using place = new Place();
  const asked = Promise.withResolvers<void>();
  let isStuck = true;
  await using server = new LinkServer((path) => {
    if (path === "/") return ["quick", "stuck"];
    if (path !== "/stuck" || !isStuck) return null;
    asked.resolve();
    const body = new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(5)) });
    return new Response(body, { headers: { ...DATED, "content-length": "17" } });
  });
  const args = ["-r", server.url, "-O", place.path("out/t")];
  const child = new Child([...denoRun("cli/main.ts"), ...args, ...place.withoutDaemon()]);
  await asked.promise;
  child.kill("SIGINT");
  assertEquals((await child.ended).code, 130);
  isStuck = false;
  const { code, stderr } = await place.direct(...args);
  assertEquals([code, Object.keys(await treeOf(place.path("out/t")))], [0, ["quick", "stuck"]], stderr);
});

Deno.test({
  name: "recursive download by the daemon links the tree, and a second run fetches only what is missing or changed",
  ignore: !isInstalled("nginx"),
  fn: async () => {
    await using place = new Place();
    Deno.chmodSync(place.folder, 0o755);
    const www = place.path("www");
    await makeTree(www, { "keep": 500_000, "gone": 1000, "short": 2000, "changed": 3000, "sub/old": 4000, "zero": 0 });
    await using server = await SERVERS.nginx.start(www);
    await using daemon = await spawnDaemon();
    for (const [style, url] of Object.entries(server.urls)) {
      const out = place.path(`out/${style}`);
      const run = () => daemon.client("-r", url, "-O", out, "--verbose");
      const first = await run();
      assertEquals(first.code, 0, first.stderr);
      assert(/\n6 files, /.test(first.stderr), first.stderr);
      assertEquals(await treeOf(out), await treeOf(www));
      const second = await run();
      assert(/^0 files, 0 B in .*, 6 unchanged$/m.test(second.stderr), second.stderr);
      assert(!second.stderr.includes("daemon at"), "a run with nothing to do asks no daemon");
      await Deno.remove(`${out}/gone`);
      await Deno.remove(`${out}/short`);
      await Deno.writeTextFile(`${out}/short`, "cut");
      const date = new Date(Date.UTC(2024, 5, 6, 7, 8, style.length * 10 + style.charCodeAt(0) % 10));
      await Deno.writeFile(`${www}/changed`, crypto.getRandomValues(new Uint8Array(3000)));
      await Deno.utime(`${www}/changed`, date, date);
      // The daemon looks at most once a minute whether its content is still the origin's: another tag, another task.
      const third = await daemon.client("-r", url, "-O", out, "--tag", `v2-${style}`);
      assert(/^3 files, .*, 3 unchanged$/m.test(third.stderr), third.stderr);
      assertEquals(await treeOf(out), await treeOf(www));
    }
  },
});

Deno.test("recursive download shares the rate limit over all files, and the last one has all of it", async () => {
  await using place = new Place();
  await using daemon = await spawnDaemon();
  const bytes = new Uint8Array(600_000);
  await using server = new LinkServer((path) =>
    path.endsWith("/")
      ? ["a", "b", "c", "d"]
      : new Response(bytes.subarray(0, path === "/a" ? 600_000 : 100_000), { headers: { ...DATED, etag: '"1"' } })
  );
  for (const run of [daemon.client.bind(daemon), place.direct.bind(place)]) {
    const startedMs = performance.now();
    const { code, stderr } = await run("-r", server.url, "-O", place.path(`out/${startedMs}`), "--ratelimit", "450000");
    const elapsedMs = performance.now() - startedMs;
    assertEquals(code, 0, stderr);
    // 900,000 B at 450,000 B/s are 2 s; a quarter of the rate to the end would be more than 5 s for the large file.
    assert(elapsedMs > 1700 && elapsedMs < 4800, `${elapsedMs} ms, ${stderr}`);
  }
});

Deno.test("recursive download with --disable-back-source and no daemon ends with exit code 14, once", async () => {
  await using place = new Place();
  await using server = new LinkServer((path) => path.endsWith("/") ? ["a", "b"] : null);
  const { code, stderr } = await place.direct("-r", server.url, "-O", "t", "--disable-back-source");
  assertEquals([code, stderr.trim().split("\n").length], [14, 1], stderr);
});

for (const args of [["--range", "0-1"], ["--digest", `md5:${"0".repeat(32)}`], ["-O", "-"], ["--accept-regex", "("]]) {
  Deno.test(`recursive download with ${args[0]} ${args[1]!.slice(0, 8)} is a usage error`, async () => {
    const { code, stdout } = await runClient(["-r", "http://127.0.0.1:1/", ...args]);
    assertEquals([code, stdout], [2, ""]);
  });
}
