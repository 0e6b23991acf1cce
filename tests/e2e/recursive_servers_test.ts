/** Whole folders from the real servers of Debian's packages: the tree arrives byte for byte. */
// covers: cli/recursive/tree.ts, cli/recursive/tree_files.ts
import { assertEquals } from "@std/assert";
import { isInstalled, SERVERS } from "../testutil/folder_servers.ts";
import { Place } from "../testutil/place.ts";
import { makeTree, nastyFiles, treeOf } from "../testutil/tree.ts";

/** A place that servers under another user can read. */
class OpenPlace extends Place {
  constructor() {
    super();
    Deno.chmodSync(this.folder, 0o755);
  }
}

for (const [name, { program, start }] of Object.entries(SERVERS)) {
  Deno.test({
    name: `recursive download brings the whole tree from ${name}, every name as it is (needs ${program})`,
    ignore: !isInstalled(program),
    fn: async () => {
      await using place = new OpenPlace();
      await makeTree(place.path("www"), nastyFiles());
      await Deno.mkdir(place.path("www/empty"));
      const wanted = await treeOf(place.path("www"));
      await using server = await start(place.path("www"));
      for (const [style, url] of Object.entries(server.urls)) {
        const out = place.path(`out/${style}`);
        const { code, stdout, stderr } = await place.direct("-r", url, "-O", out);
        assertEquals([code, stdout], [0, ""], stderr);
        assertEquals(await treeOf(out), wanted, `${name} ${style}`);
        const again = await place.direct("-r", url, "-O", out);
        assertEquals([again.code, / (\d+) unchanged\n$/.exec(again.stderr)?.[1]], [0, "27"], again.stderr);
      }
    },
  });

  Deno.test({
    name: `recursive download of links that loop ends with ${name} (needs ${program})`,
    ignore: !isInstalled(program),
    fn: async () => {
      await using place = new OpenPlace();
      await makeTree(place.path("www"), { "f": 3, "sub/g": 4 });
      await Deno.symlink(".", place.path("www/loop"));
      await using server = await start(place.path("www"));
      for (const url of Object.values(server.urls)) {
        const { code, stdout, stderr } = await place.direct("-r", "--list", "--level", "3", url);
        assertEquals([code, stderr], [0, ""]);
        const lines = stdout.trim().split("\n").map((line) => line.slice(url.length)).sort();
        // mod_dav skips links.
        const all = ["f", "loop/f", "loop/loop/f", "loop/sub/g", "sub/g"];
        assertEquals(lines, lines.length === 2 ? ["f", "sub/g"] : all);
      }
    },
  });
}

Deno.test({
  name: "recursive download names the broken links of a folder, and brings the rest (needs nginx)",
  ignore: !isInstalled("nginx"),
  fn: async () => {
    await using place = new OpenPlace();
    await makeTree(place.path("www"), { "a": 3, "z": 4 });
    await Deno.symlink("nowhere", place.path("www/broken"));
    await using server = await SERVERS.nginx.start(place.path("www"));
    const html = await place.direct("-r", server.urls.html!, "-O", "html");
    assertEquals(html.code, 3, html.stderr);
    assertEquals(html.stderr.includes("/broken: Cannot read "), true, html.stderr);
    assertEquals(html.stderr.includes("1 failed"), true, html.stderr);
    assertEquals(Object.keys(await treeOf(place.path("out/html"))), ["a", "z"]);
    // In JSON nginx says itself that this is no file.
    const json = await place.direct("-r", server.urls.json!, "-O", "json");
    assertEquals([json.code, Object.keys(await treeOf(place.path("out/json")))], [0, ["a", "z"]]);
  },
});
