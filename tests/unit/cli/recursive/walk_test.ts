import { assertEquals, assertRejects } from "@std/assert";
import { LacewingError } from "../../../../peer/core/errors.ts";
import type { Listing, ListRequest } from "../../../../peer/source/listing/listing.ts";
import { type Found, walk, type WalkOptions } from "../../../../cli/recursive/walk.ts";

const START = "http://host/a/";

/** Entries of folders by path below the start; a folder's name ends with `/`. */
type Folders = Record<string, readonly string[]>;

function listingOf(path: string, names: readonly string[], refused: Listing["refused"] = []): Listing {
  const url = START + path;
  const entries = names.map((name) => ({
    url: new URL(name, url).href,
    isFolder: name.endsWith("/"),
    size: 1,
    modifiedMs: null,
  }));
  return { url, start: START, style: "page", entries, refused };
}

/** Walks folders that are given; keeps what was asked for. */
async function run(
  folders: Folders,
  options: Partial<WalkOptions> = {},
): Promise<{ finds: Found[]; asked: ListRequest[] }> {
  const asked: ListRequest[] = [];
  const list = (request: ListRequest) => {
    asked.push(request);
    const path = request.url.slice(START.length);
    const names = folders[path];
    if (names === undefined) return Promise.reject(new LacewingError("source_not_found", `no ${path}`));
    return Promise.resolve(listingOf(path, names));
  };
  const signal = new AbortController().signal;
  const root = listingOf("", folders[""] ?? []);
  const finds = await Array.fromAsync(
    walk(root, { list, headers: [], level: 5, unlimited: false, signal, ...options }),
  );
  return { finds, asked };
}

function files(finds: readonly Found[]): string[] {
  return finds.flatMap((found) => found.kind === "file" ? [found.path.join("/")] : []);
}

function failures(finds: readonly Found[]): string[] {
  return finds.flatMap((found) => found.kind === "failure" ? [found.what] : []);
}

const TREE: Folders = { "": ["x", "b/", "c/"], "b/": ["y", "d/"], "c/": [], "b/d/": ["z"] };

Deno.test("walk() finds all files and folders, nearest first", async () => {
  const { finds } = await run(TREE);
  const names = finds.map((found) => found.kind === "failure" ? "" : `${found.kind} ${found.path.join("/")}`);
  assertEquals(names, ["file x", "folder b", "file b/y", "folder c", "folder b/d", "file b/d/z"]);
});

for (const [level, expected] of [[1, ["x"]], [2, ["x", "b/y"]], [3, ["x", "b/y", "b/d/z"]]] as const) {
  Deno.test(`walk() of level ${level} takes ${expected.join(", ")}, and asks for no folder in vain`, async () => {
    const { finds, asked } = await run(TREE, { level });
    assertEquals(files(finds), [...expected]);
    assertEquals(asked.length, [0, 2, 3][level - 1]);
  });
}

Deno.test("walk() lists no folder and gives no file twice, however its URL is written", async () => {
  const { finds, asked } = await run({
    "": ["b/", "./b/", "%62/", "b/../b/", "/a/", "http://host/a/b/", "f", "%66"],
    "b/": ["/a/", "../b/", "g", "../f"],
  });
  assertEquals([files(finds), asked.map(({ url }) => url)], [["f", "b/g"], ["http://host/a/b/"]]);
});

Deno.test("walk() of a loop ends at its level, and says so where the user set none", async () => {
  const list = ({ url }: ListRequest) => Promise.resolve(listingOf(url.slice(START.length), ["f", "loop/"]));
  const quiet = await run({ "": ["f", "loop/"] }, { list, level: 4 });
  assertEquals([files(quiet.finds).length, failures(quiet.finds)], [4, []]);
  const said = await run({ "": ["f", "loop/"] }, { list, level: 4, unlimited: true });
  assertEquals([files(said.finds).length, failures(said.finds).length], [4, 1]);
});

Deno.test("walk() goes on when a folder cannot be listed, and names it", async () => {
  const { finds } = await run({ "": ["gone/", "b/"], "b/": ["y"] });
  assertEquals([files(finds), failures(finds)], [["b/y"], ["http://host/a/gone/"]]);
});

Deno.test("walk() names what it refuses: by the listing, or by where it would go", async () => {
  const root = listingOf("", ["ok", "..%2fx", "./C:/"], [{ name: "../up", reason: "a name may not hold /" }]);
  const finds = await Array.fromAsync(walk(root, {
    list: () => Promise.reject(new Error("not asked")),
    headers: [],
    level: 5,
    unlimited: false,
    signal: new AbortController().signal,
  }));
  assertEquals(files(finds), ["ok"]);
  assertEquals(failures(finds), ['http://host/a/ "../up"', "http://host/a/..%2fx", "http://host/a/C:/"]);
  for (const found of finds) {
    if (found.kind === "failure") assertEquals((found.error as LacewingError).code, "file");
  }
});

Deno.test("walk() ends at its bound of entries, whatever the server makes up", async () => {
  let count = 0;
  const list = ({ url }: ListRequest) =>
    Promise.resolve(listingOf(url.slice(START.length), Array.from({ length: 10 }, () => `n${count++}/`)));
  const { finds, asked } = await run({ "": ["d/"] }, { list, level: 100, entriesMax: 500 });
  assertEquals(failures(finds).length, 1);
  assertEquals(asked.length < 60, true);
});

Deno.test("walk() leaves out a folder that was redirected to one it has had", async () => {
  const list = ({ url }: ListRequest) => {
    const path = url.slice(START.length);
    return Promise.resolve(path === "alias/" ? listingOf("b/", ["y"]) : listingOf(path, ["y"]));
  };
  const { finds } = await run({ "": ["b/", "alias/"] }, { list });
  assertEquals(files(finds), ["b/y"]);
});

Deno.test("walk() asks for few folders ahead of who takes its finds", async () => {
  let asked = 0;
  const list = ({ url }: ListRequest) => {
    asked += 1;
    return Promise.resolve(listingOf(url.slice(START.length), ["f"]));
  };
  const names = Array.from({ length: 100 }, (_, index) => `d${index}/`);
  const finds = walk(listingOf("", names), {
    list,
    headers: [],
    level: 5,
    unlimited: false,
    signal: new AbortController().signal,
  });
  await finds.next();
  assertEquals(asked, 4);
  await finds.return();
});

Deno.test("walk() ends with the reason when it is aborted", async () => {
  const abort = new AbortController();
  const list = () => {
    abort.abort(new Error("stopped"));
    return Promise.reject(abort.signal.reason);
  };
  await assertRejects(() => run({ "": ["d/"] }, { list, signal: abort.signal }), Error, "stopped");
});

Deno.test("walk() sends the headers, the start and the style with every request", async () => {
  const { asked } = await run(TREE, { headers: [["x-key", "v"]] });
  for (const { headers, start, style } of asked) {
    assertEquals([headers, start, style], [[["x-key", "v"]], START, "page"]);
  }
});
