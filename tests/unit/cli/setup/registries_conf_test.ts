/** The drop-in of registries.conf beside what stands in the other files. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { planRegistriesConf } from "../../../../cli/setup/registries_conf.ts";
import { readToml, tablesIn } from "../../../../cli/setup/toml.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { MemoryFiles, order, PROXY } from "./memory_files.ts";

const MAIN = "/etc/containers/registries.conf";
const FOLDER = "/etc/containers/registries.conf.d";
const PATH = `${FOLDER}/lacewing.conf`;

async function setUp(
  files: MemoryFiles,
  options: Parameters<typeof order>[1] & { runtime?: "podman" | "crio" } = {},
) {
  const plan = await planRegistriesConf(order(options.runtime ?? "podman", options), files);
  files.apply(plan);
  return plan;
}

const entries = (files: MemoryFiles) => tablesIn(readToml(files.texts.get(PATH) ?? "", PATH).registry);
const mirror = (host: string) => ({ location: `127.0.0.1:65001/${host.replace(":", "__")}`, insecure: true });

Deno.test("every registry gets an entry whose mirror names it in its path", async () => {
  const files = new MemoryFiles();
  await setUp(files, { registries: ["r.test:5000", "http://10.0.0.5:5000"] });
  assertEquals(entries(files), [
    { prefix: "r.test:5000", location: "r.test:5000", mirror: [mirror("r.test:5000")] },
    { prefix: "10.0.0.5:5000", location: "10.0.0.5:5000", insecure: true, mirror: [mirror("10.0.0.5:5000")] },
  ]);
  const again = await setUp(files, { registries: ["http://10.0.0.5:5000", "r.test:5000"] });
  assertEquals(again.changes[0]?.after, again.changes[0]?.before);
});

Deno.test("registries come and go one by one", async () => {
  const files = new MemoryFiles();
  await setUp(files, { registries: ["a.test"] });
  await setUp(files, { registries: ["b.test"], mirror: "https://m.test" });
  assertEquals(entries(files).map((entry) => tablesIn(entry.mirror)[0]), [mirror("a.test"), {
    location: "m.test/b.test",
  }]);
  await setUp(files, { registries: ["a.test"], remove: true });
  assertEquals(entries(files).map(({ prefix }) => prefix), ["b.test"]);
  await setUp(files, { remove: true });
  assertEquals([...files.texts.keys()], []);
  assertEquals((await setUp(files, { remove: true })).changes, []);
});

Deno.test("podman keeps what it was set up with when CRI-O's is taken back, in the file that both read", async () => {
  const files = new MemoryFiles();
  await setUp(files, { registries: ["a.test"] });
  const podmans = files.texts.get(PATH);
  await setUp(files, { runtime: "crio", registries: ["a.test", "b.test"] });
  assertEquals(entries(files).length, 2);
  const { notes } = await setUp(files, { runtime: "crio", remove: true });
  assertEquals(files.texts.get(PATH), podmans);
  assert(notes[0]?.includes("a.test; lacewing setup podman --remove"), notes[0]);
  const again = await setUp(files, { runtime: "crio", remove: true });
  assertEquals([again.changes, again.notes], [[], [notes[0]!]]);
  await setUp(files, { remove: true });
  assertEquals([...files.texts.keys()], []);
});

Deno.test("an entry that does not say for whom it stands goes with whoever is taken back", async () => {
  const files = new MemoryFiles();
  await setUp(files, { registries: ["a.test"] });
  files.texts.set(PATH, files.texts.get(PATH)!.replace(" for podman", ""));
  await setUp(files, { runtime: "crio", remove: true });
  assertEquals([...files.texts.keys()], []);
});

Deno.test("an empty file of the user's is back after the setup is taken back", async () => {
  const files = new MemoryFiles({ [PATH]: "" });
  await setUp(files, { registries: ["a.test"] });
  await setUp(files, { remove: true });
  assertEquals(files.texts.get(PATH), "");
});

Deno.test("without a registry it is those of the daemon, or Docker Hub", async () => {
  const files = new MemoryFiles();
  const { notes } = await setUp(files);
  assertEquals(entries(files).map(({ prefix }) => prefix), ["docker.io"]);
  assert(notes.some((note) => note.includes("docker.io") && note.includes("--registry")));
  await setUp(files, { proxy: { ...PROXY, registries: ["r.test"] } });
  assertEquals(entries(files).map(({ prefix }) => prefix), ["docker.io", "r.test"]);
});

Deno.test("a daemon of one registry gets no name in the path", async () => {
  const proxy = { ...PROXY, url: "https://r.test/", dynamic: false };
  const files = new MemoryFiles();
  await setUp(files, { proxy });
  assertEquals(entries(files)[0]?.mirror, [{ location: "127.0.0.1:65001", insecure: true }]);
  await assertRejects(() => setUp(files, { proxy, registries: ["a.test"] }), LacewingError, "r.test alone");
});

Deno.test("what an earlier file says of a registry is repeated, with our mirror first", async () => {
  const files = new MemoryFiles({
    [MAIN]: 'unqualified-search-registries = ["docker.io"]\n[[registry]]\nlocation = "r.test"\ninsecure = true\n',
    [`${FOLDER}/000-shortnames.conf`]: '[aliases]\n"x" = "docker.io/library/x"\n',
    [`${FOLDER}/a.conf`]:
      '[[registry]]\nprefix = "s.test"\nlocation = "inner.test"\nblocked = false\n[[registry.mirror]]\nlocation = "m.test"\n',
  });
  const { notes } = await setUp(files, { registries: ["r.test", "s.test", "t.test"] });
  assertEquals(entries(files), [
    { prefix: "r.test", location: "r.test", insecure: true, mirror: [mirror("r.test")] },
    { prefix: "s.test", location: "inner.test", blocked: false, mirror: [mirror("s.test"), { location: "m.test" }] },
    { prefix: "t.test", location: "t.test", mirror: [mirror("t.test")] },
  ]);
  assertEquals(notes.filter((note) => note.includes("is repeated")).length, 2);
});

Deno.test("a mirror that is there by hand is not written again", async () => {
  const text = '[[registry]]\nlocation = "r.test"\n[[registry.mirror]]\nlocation = "127.0.0.1:65001/r.test"\n';
  const files = new MemoryFiles({ [MAIN]: text });
  const { changes, notes } = await setUp(files, { registries: ["r.test"] });
  assertEquals(changes, []);
  assert(notes[0]?.includes(MAIN));
});

const BLOCKERS: [string, string, string][] = [
  [PATH, '[[registry]]\nlocation = "r.test"\n', "by hand"],
  [`${FOLDER}/zz.conf`, '[[registry]]\nprefix = "r.test"\n', "comes after"],
];
for (const [path, text, words] of BLOCKERS) {
  Deno.test(`an entry in ${path} that would count instead of ours is named`, async () => {
    const files = new MemoryFiles({ [path]: text });
    const error = await assertRejects(() => setUp(files, { registries: ["r.test"] }), LacewingError, words);
    assertEquals([error.code, error.message.includes(path)], ["conflict", true]);
  });
}

Deno.test("what others wrote in our file stays, and comes back byte for byte", async () => {
  const text = '# mine\n[[registry]]\nlocation = "mine.test"';
  const files = new MemoryFiles({ [PATH]: text });
  assertEquals((await setUp(files, { registries: ["r.test"] })).changes[0]?.keepsBackup, true);
  assertEquals(entries(files).length, 2);
  await setUp(files, { remove: true });
  assertEquals(files.texts.get(PATH), text);
});

for (const path of [MAIN, PATH, `${FOLDER}/a.conf`]) {
  Deno.test(`${path} that is no TOML is named`, async () => {
    const error = await assertRejects(
      () => setUp(new MemoryFiles({ [path]: "[[registry\n" }), { registries: ["r.test"] }),
      LacewingError,
      path,
    );
    assertEquals(error.code, "config_invalid");
  });
}

Deno.test("a port stands in a path as podman can read it, an address of IPv6 not at all", async () => {
  const files = new MemoryFiles();
  await setUp(files, { registries: ["r.test:5000"] });
  assertEquals(tablesIn(entries(files)[0]?.mirror)[0]?.location, "127.0.0.1:65001/r.test__5000");
  const error = await assertRejects(() => setUp(files, { registries: ["[fd00::1]:5000"] }), LacewingError, "give the");
  assertEquals(error.code, "usage");
});
