/** What containerd's folder becomes, from every state that it may be in. */
// covers: cli/setup/containerd.ts, cli/setup/plan.ts
import { assert, assertEquals, assertRejects } from "@std/assert";
import { planContainerd, readConfig } from "../../../../cli/setup/containerd.ts";
import { LacewingError } from "../../../../peer/core/errors.ts";
import { MemoryFiles, order, PROXY } from "./memory_files.ts";

const CERTS = "/etc/containerd/certs.d";
const CONFIG = "/etc/containerd/config.toml";
const HOST = '[host."http://127.0.0.1:65001"]\n  capabilities = ["pull", "resolve"]\n';
const GOOD_CONFIG = `version = 2\n[plugins."io.containerd.grpc.v1.cri".registry]\nconfig_path = "${CERTS}"\n`;

/** Our file as it stands when nobody else wrote in it. */
const ours = (head = "") =>
  `# >>> lacewing setup: containerd (take back with lacewing setup --remove)\n${head}${HOST}# <<< lacewing setup\n`;

async function setUp(files: MemoryFiles, options: Parameters<typeof order>[1] = {}) {
  const plan = await planContainerd(order("containerd", options), files);
  files.apply(plan);
  return plan;
}

Deno.test("without a registry one file serves all, and again changes nothing", async () => {
  const files = new MemoryFiles({ [CONFIG]: GOOD_CONFIG });
  const { notes } = await setUp(files);
  assertEquals(notes, []);
  assertEquals(files.texts.get(`${CERTS}/_default/hosts.toml`), ours());
  const again = await setUp(files);
  for (const { before, after } of again.changes) assertEquals(after, before);
});

Deno.test("every named registry has a folder, and the way back leaves nothing", async () => {
  const files = new MemoryFiles({ [CONFIG]: GOOD_CONFIG });
  await setUp(files, { registries: ["docker.io", "r.test:5000", "http://10.0.0.5:5000"] });
  assertEquals(files.texts.get(`${CERTS}/docker.io/hosts.toml`), ours());
  assertEquals(files.texts.get(`${CERTS}/r.test:5000/hosts.toml`), ours());
  assertEquals(files.texts.get(`${CERTS}/10.0.0.5:5000/hosts.toml`), ours('server = "http://10.0.0.5:5000"\n'));
  await setUp(files, { remove: true, registries: ["r.test:5000"] });
  assertEquals([...files.texts.keys()].filter((path) => path.startsWith(CERTS)).length, 2);
  await setUp(files, { remove: true });
  assertEquals([...files.texts.keys()], [CONFIG]);
  assertEquals((await setUp(files, { remove: true })).changes, []);
});

Deno.test("the folder is the one of config.toml, of every version, also in an imported file", async () => {
  const rows: [Record<string, string>, string][] = [
    [{ [CONFIG]: 'version = 2\n[plugins."io.containerd.grpc.v1.cri".registry]\nconfig_path = "/certs/"\n' }, "/certs"],
    [{ [CONFIG]: 'version = 3\n[plugins."io.containerd.cri.v1.images".registry]\nconfig_path = "/a:/b"\n' }, "/a"],
    [{ [CONFIG]: '[plugins.cri.registry]\nconfig_path = "/old"\n' }, "/old"],
    [{
      [CONFIG]: 'version = 2\nimports = ["/etc/containerd/conf.d/*.toml"]\n',
      "/etc/containerd/conf.d/a.toml": '[plugins."io.containerd.grpc.v1.cri".registry]\nconfig_path = "/imported"\n',
      "/etc/containerd/conf.d/a.txt": "no TOML at all [",
    }, "/imported"],
  ];
  for (const [texts, folder] of rows) {
    const files = new MemoryFiles(texts);
    const { notes } = await setUp(files);
    assertEquals(notes, []);
    assert(files.texts.has(`${folder}/_default/hosts.toml`), folder);
  }
});

Deno.test("a config.toml without config_path, or with the old mirrors, is told of with what to write", async () => {
  const none = await setUp(new MemoryFiles());
  assert(none.notes[0]?.includes(`config_path = "${CERTS}" under [plugins."io.containerd.grpc.v1.cri".registry]`));
  const third = await setUp(new MemoryFiles({ [CONFIG]: "version = 3\n" }));
  assert(third.notes[0]?.includes('[plugins."io.containerd.cri.v1.images".registry]'));
  const old = await setUp(
    new MemoryFiles({
      [CONFIG]: `${GOOD_CONFIG}[plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]\nendpoint = ["x"]\n`,
    }),
  );
  assertEquals(old.notes.length, 1);
  assert(old.notes[0]?.includes("registry.mirrors"));
  assertEquals((await readConfig(new MemoryFiles({ [CONFIG]: "" }))).configPath, null);
});

const THEIRS = [
  "",
  "\n",
  'server = "https://r.test"\nca = "/ca.pem"\n\n[host."https://other.test"]\n  capabilities = ["pull"]\n',
  'server = "https://r.test"\n',
  '# only a comment\n[host]\n  [host."https://other.test"]\n    skip_verify = true\n',
  'capabilities = [\n  "pull",\n]\n',
];
for (const text of THEIRS) {
  Deno.test(`what others wrote stays, our host is the first, and the way back is byte for byte: ${JSON.stringify(text)}`, async () => {
    const path = `${CERTS}/r.test/hosts.toml`;
    const files = new MemoryFiles({ [CONFIG]: GOOD_CONFIG, [path]: text });
    const registries = ["http://r.test"];
    const { changes } = await setUp(files, { registries });
    assertEquals(changes[0]?.keepsBackup, true);
    const after = files.texts.get(path)!;
    assert(after.indexOf("65001") < (after.indexOf("other.test") + 1 || Infinity));
    assertEquals(after.includes('server = "http://r.test"'), !text.includes("server ="));
    // With another port the block moves on, with no second one.
    await setUp(files, { registries, mirror: "http://127.0.0.1:7" });
    assertEquals(files.texts.get(path)!.includes("65001"), false);
    await setUp(files, { registries, remove: true });
    assertEquals(files.texts.get(path), text);
  });
}

Deno.test("a file that has the mirror by hand stays as it is", async () => {
  const path = `${CERTS}/_default/hosts.toml`;
  const files = new MemoryFiles({ [path]: HOST });
  const { changes } = await setUp(files);
  assertEquals(changes.map(({ before, after }) => [before, after]), [[HOST, HOST]]);
  assertEquals((await setUp(files, { remove: true })).changes, []);
});

Deno.test("a folder in the spelling with underscores is the one that counts", async () => {
  const files = new MemoryFiles({ [`${CERTS}/r.test_5000_/hosts.toml`]: 'server = "https://r.test:5000"\n' });
  await setUp(files, { registries: ["r.test:5000"] });
  assertEquals(files.texts.has(`${CERTS}/r.test:5000/hosts.toml`), false);
  assert(files.texts.get(`${CERTS}/r.test_5000_/hosts.toml`)?.includes("65001"));
});

Deno.test("registries with folders of their own are named when only _default is written", async () => {
  const files = new MemoryFiles({ [CONFIG]: GOOD_CONFIG, [`${CERTS}/r.test_5000_/ca.crt`]: "" });
  await setUp(files, { registries: ["ours.test"] });
  const { notes } = await setUp(files);
  assertEquals(notes.length, 1);
  assert(notes[0]?.includes("r.test:5000") && !notes[0].includes("ours.test"), notes[0]);
});

Deno.test("a daemon of one registry gets a folder of that one, and no other", async () => {
  const proxy = { ...PROXY, url: "https://r.test", dynamic: false };
  const files = new MemoryFiles();
  await setUp(files, { proxy });
  assertEquals([...files.texts.keys()], [`${CERTS}/r.test/hosts.toml`]);
  await assertRejects(() => setUp(files, { proxy, registries: ["docker.io"] }), LacewingError, "r.test alone");
});

for (const [path, text] of [[CONFIG, "version = "], [`${CERTS}/_default/hosts.toml`, "[host"]] as const) {
  Deno.test(`${path} that is no TOML is named, and nothing is planned`, async () => {
    const error = await assertRejects(() => setUp(new MemoryFiles({ [path]: text })), LacewingError, path);
    assertEquals(error.code, "config_invalid");
  });
}
