/** `lacewing setup` as a process: what it prints, what it writes, what it says to trouble. */
// covers: cli/commands/setup.ts
import { assert, assertEquals } from "@std/assert";
import { Place } from "../testutil/place.ts";
import { runClient, spawnDaemon } from "../testutil/process.ts";

const DEFAULT_HOSTS = "etc/containerd/certs.d/_default/hosts.toml";

class Root extends Place {
  readonly root = this.path("root");

  setUp(...args: string[]) {
    // No socket of this machine: a daemon may run on it.
    const env = { XDG_RUNTIME_DIR: this.folder };
    return runClient(["setup", ...args, "--root", this.root, "--mirror", "http://127.0.0.1:65001"], { env });
  }

  files(): string[] {
    const found: string[] = [];
    const walk = (folder: string) => {
      for (const { name, isDirectory } of Deno.readDirSync(`${this.root}/${folder}`)) {
        if (isDirectory) walk(`${folder}${name}/`);
        else found.push(folder + name);
      }
    };
    try {
      walk("");
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
    return found.sort();
  }
}

Deno.test("--dry-run prints the files and writes nothing; without it they are written, once", async () => {
  await using place = new Root();
  for (
    const [runtime, path] of [
      ["containerd", DEFAULT_HOSTS],
      ["docker", "etc/docker/daemon.json"],
      ["podman", "etc/containers/registries.conf.d/lacewing.conf"],
      ["crio", "etc/containers/registries.conf.d/lacewing.conf"],
    ] as const
  ) {
    const dry = await place.setUp(runtime, "--dry-run");
    assertEquals([dry.code, place.files()], [0, []], dry.stderr);
    assert(dry.stdout.startsWith(`# ${place.root}/${path} (new)\n`), dry.stdout);
    const first = await place.setUp(runtime);
    assertEquals([first.code, first.stdout.split("\n")[0]], [0, `created ${place.root}/${path}`]);
    const text = await Deno.readTextFile(`${place.root}/${path}`);
    assert(dry.stdout.includes(text));
    const again = await place.setUp(runtime);
    assertEquals([again.code, again.stdout.split("\n")[0]], [0, `unchanged ${place.root}/${path}`]);
    const back = await place.setUp(runtime, "--remove");
    assertEquals([back.code, back.stdout.split("\n")[0]], [0, `removed ${place.root}/${path}`]);
    assertEquals(place.files(), []);
    const nothing = await place.setUp(runtime, "--remove");
    assertEquals([nothing.code, nothing.stdout], [0, ""]);
    assert(nothing.stderr.includes("nothing of lacewing"));
  }
});

Deno.test("a changed file has its backup, and is back byte for byte after --remove", async () => {
  await using place = new Root();
  const path = `${place.root}/etc/docker/daemon.json`;
  const text = '{ "debug": true }';
  await Deno.mkdir(`${place.root}/etc/docker`, { recursive: true });
  await Deno.writeTextFile(path, text);
  const { code, stdout } = await place.setUp("docker");
  assertEquals([code, stdout], [0, `changed ${path}\nkept ${path}.lacewing-backup\ncreated ${path}.lacewing\n`]);
  assertEquals(await Deno.readTextFile(`${path}.lacewing-backup`), text);
  assertEquals((await place.setUp("docker", "--remove")).code, 0);
  assertEquals([place.files(), await Deno.readTextFile(path)], [["etc/docker/daemon.json"], text]);
});

const BAD: [name: string, args: string[], file: [string, string] | null, code: number, words: string[]][] = [
  ["an unknown runtime", ["dockerd"], null, 2, ["dockerd", "did you mean docker?"]],
  ["no runtime", [], null, 2, ["containerd, docker, podman, crio"]],
  ["a registry that docker would never ask for", ["docker", "--registry", "r.test"], null, 2, ["r.test"]],
  ["JSON that is none", ["docker"], ["etc/docker/daemon.json", '{"a":'], 2, ["daemon.json", "not JSON"]],
  ["TOML that is none", ["containerd"], [DEFAULT_HOSTS, "[host"], 2, ["hosts.toml", "not TOML"]],
  ["a registries.conf that is no TOML", ["podman"], ["etc/containers/registries.conf", "x"], 2, ["registries.conf"]],
  ["a file in the place of a folder", ["podman"], ["etc/containers", ""], 11, ["etc/containers"]],
  ["a folder in the place of a file", ["docker"], ["etc/docker/daemon.json/x", ""], 11, ["daemon.json"]],
];
for (const [name, args, file, code, words] of BAD) {
  Deno.test(`${name} ends with exit code ${code}, and nothing is written`, async () => {
    await using place = new Root();
    if (file !== null) {
      await Deno.mkdir(`${place.root}/${file[0]}`.replace(/\/[^/]*$/, ""), { recursive: true });
      await Deno.writeTextFile(`${place.root}/${file[0]}`, file[1]);
    }
    const before = place.files();
    const { code: found, stdout, stderr } = await place.setUp(...args);
    assertEquals([found, stdout], [code, ""], stderr);
    for (const word of words) assert(stderr.includes(word), `${stderr} does not say ${word}`);
    assertEquals(place.files(), before);
  });
}

Deno.test({
  name: "a folder that may not be written ends with exit code 11",
  // Root may write everywhere but there.
  ignore: Deno.build.os !== "linux",
  async fn() {
    const { code, stderr } = await runClient(["setup", "docker", "--root", "/proc", "--mirror", "http://127.0.0.1:1"]);
    assertEquals(code, 11, stderr);
    assert(stderr.includes("/proc/etc"));
  },
});

Deno.test("the mirror and its registries are those of the daemon that runs", async () => {
  const registries = [{ host: "r.test:5000", url: "http://127.0.0.1:9" }];
  const proxy = { tcpListen: { port: 0 }, registryMirror: { registries }, basicAuth: { username: "u", password: "p" } };
  await using daemon = await spawnDaemon({ config: { proxy } });
  const podman = await runClient([
    "setup",
    "podman",
    "--daemon-sock",
    daemon.socket,
    "--root",
    daemon.folder,
    "--dry-run",
  ]);
  assertEquals(podman.code, 0, podman.stderr);
  assert(podman.stdout.includes(`location = "${daemon.proxy}/r.test__5000"`), podman.stdout);
  assert(podman.stdout.includes(`location = "${daemon.proxy}/docker.io"`));
  assert(podman.stderr.includes("proxy.basicAuth") && !podman.stderr.includes("no daemon answers"), podman.stderr);
});

Deno.test("a daemon without a proxy, and a named socket without a daemon, are errors that say what to do", async () => {
  await using daemon = await spawnDaemon();
  const args = ["setup", "containerd", "--root", daemon.folder, "--dry-run", "--daemon-sock"];
  const without = await runClient([...args, daemon.socket]);
  assertEquals([without.code, without.stderr.includes("proxy: {}")], [2, true], without.stderr);
  const nobody = await runClient([...args, `${daemon.folder}/none.sock`]);
  assertEquals([nobody.code, nobody.stderr.includes("none.sock")], [14, true], nobody.stderr);
  assertEquals((await runClient([...args, `${daemon.folder}/none.sock`, "--mirror", "http://127.0.0.1:1"])).code, 0);
});
