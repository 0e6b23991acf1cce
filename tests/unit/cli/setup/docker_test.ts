/** daemon.json before and after, and back again. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { planDocker } from "../../../../cli/setup/docker.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { MemoryFiles, order, PROXY } from "./memory_files.ts";

const PATH = "/etc/docker/daemon.json";
const MIRROR = "http://127.0.0.1:65001";

async function setUp(files: MemoryFiles, options: Parameters<typeof order>[1] = {}) {
  const plan = await planDocker(order("docker", options), files);
  files.apply(plan);
  return plan;
}

const json = (files: MemoryFiles) => JSON.parse(files.texts.get(PATH) ?? "null");

Deno.test("a machine without a file gets one, and the way back leaves nothing", async () => {
  const files = new MemoryFiles();
  await setUp(files);
  assertEquals(json(files), { "registry-mirrors": [MIRROR] });
  for (const { before, after } of (await setUp(files)).changes) assertEquals(after, before);
  await setUp(files, { remove: true });
  assertEquals([...files.texts.keys()], []);
  assertEquals((await setUp(files, { remove: true })).changes, []);
});

const BEFORE = [
  '{\n\t"data-root": "/x",\n\t"registry-mirrors": ["https://m.test/"],\n\t"log-opts": { "max-size": "10m" }\n}',
  '{"insecure-registries":["10.0.0.0/8"]}\n',
  "{}",
  '{ "registry-mirrors": [] }\n',
];
for (const text of BEFORE) {
  Deno.test(`what stands in ${JSON.stringify(text)} stays, and the way back is byte for byte`, async () => {
    const files = new MemoryFiles({ [PATH]: text });
    const was = JSON.parse(text);
    const { changes } = await setUp(files, { mirror: "http://10.1.1.1:65001" });
    assertEquals(changes[0]?.keepsBackup, true);
    assertEquals(json(files), {
      ...was,
      "registry-mirrors": ["http://10.1.1.1:65001", ...was["registry-mirrors"] ?? []],
      // Only loopback is taken without TLS.
      "insecure-registries": ["10.1.1.1:65001", ...was["insecure-registries"] ?? []],
    });
    // Another address replaces ours, and nothing else.
    await setUp(files, { mirror: "https://mirror.test" });
    assertEquals(json(files)["registry-mirrors"][0], "https://mirror.test");
    assertEquals(JSON.stringify(json(files)).includes("10.1.1.1"), false);
    assertEquals(files.texts.get(`${PATH}.lacewing-backup`), text);
    await setUp(files, { remove: true });
    if (Object.keys(was).length > 0) assertEquals(files.texts.get(PATH), text);
  });
}

Deno.test("a mirror that the user has written stays the user's", async () => {
  const text = `{ "registry-mirrors": ["https://first.test", "${MIRROR}/"] }\n`;
  const files = new MemoryFiles({ [PATH]: text });
  await setUp(files);
  assertEquals(files.texts.get(PATH), text);
  await setUp(files, { remove: true });
  assertEquals([...files.texts], [[PATH, text]]);
});

Deno.test("what the user adds later survives the way back", async () => {
  const files = new MemoryFiles({ [PATH]: '{"debug": false}' });
  await setUp(files);
  files.texts.set(
    PATH,
    JSON.stringify({ ...json(files), debug: true, "registry-mirrors": [MIRROR, "https://late.test"] }),
  );
  await setUp(files, { remove: true });
  assertEquals(json(files), { debug: true, "registry-mirrors": ["https://late.test"] });
});

Deno.test("the indent of the file is kept", async () => {
  const files = new MemoryFiles({ [PATH]: '{\n    "debug": true\n}\n' });
  await setUp(files);
  assert(files.texts.get(PATH)?.includes('\n    "registry-mirrors": [\n        "http'));
});

Deno.test("a daemon whose own registry is another one is told of", async () => {
  assertEquals((await setUp(new MemoryFiles(), { proxy: PROXY })).notes.length, 1);
  const { notes } = await setUp(new MemoryFiles(), { proxy: { ...PROXY, url: "https://r.test" } });
  assert(notes[1]?.includes("r.test") && notes[1].includes("https://index.docker.io"));
});

Deno.test("another registry than Docker Hub is wrong use, because dockerd would never ask", async () => {
  await setUp(new MemoryFiles(), { registries: ["docker.io"] });
  const error = await assertRejects(
    () => setUp(new MemoryFiles(), { registries: ["docker.io", "r.test"] }),
    LacewingError,
    "r.test",
  );
  assertEquals(error.code, "usage");
});

const BAD: [string, string][] = [
  ["{", "not JSON"],
  ["[]", "JSON object"],
  ['"x"', "JSON object"],
  ['{"registry-mirrors": "https://m.test"}', "registry-mirrors: want a list"],
  ['{"insecure-registries": [1]}', "insecure-registries: want a list"],
];
for (const [text, words] of BAD) {
  Deno.test(`${text} is refused by its name`, async () => {
    for (const remove of [false, true]) {
      const files = new MemoryFiles({ [PATH]: text, [`${PATH}.lacewing`]: "{}" });
      const error = await assertRejects(() => setUp(files, { remove }), LacewingError, words);
      assertEquals([error.code, error.message.includes(PATH)], ["config_invalid", true]);
    }
  });
}

Deno.test("the way back says whether a reload is enough: dockerd keeps a list that its file no longer names", async () => {
  for (
    const [text, words] of [[null, "restart"], ["{}", "restart"], ['{"registry-mirrors":["https://m.test"]}', "reload"]]
  ) {
    const files = new MemoryFiles(text === null ? {} : { [PATH]: text! });
    assert((await setUp(files)).notes[0]?.endsWith("systemctl reload docker"));
    const { notes } = await setUp(files, { remove: true });
    assert(notes[0]?.includes(`systemctl ${words} docker`), `${text}: ${notes[0]}`);
  }
});
