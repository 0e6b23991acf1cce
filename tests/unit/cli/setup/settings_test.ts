/** The command line of setup, as users write and miswrite it. */
// covers: cli/setup/settings.ts, cli/setup/options.ts
import { assert, assertEquals } from "@std/assert";
import { explain } from "../../../../cli/failure.ts";
import { parseCommand } from "../../../../cli/parse.ts";
import { readSetupSettings } from "../../../../cli/setup/settings.ts";

const read = (...args: string[]) => readSetupSettings(parseCommand(["setup", ...args]));

Deno.test("a runtime alone is enough", () => {
  assertEquals(read("containerd"), {
    runtime: "containerd",
    registries: [],
    mirror: null,
    root: null,
    dryRun: false,
    remove: false,
  });
});

Deno.test("every option is read", () => {
  const { registries, ...rest } = read(
    ...["podman", "--registry", "a.test", "--registry=http://b.test:5000", "--mirror", "http://10.0.0.1:1/"],
    ...["--root", "/host", "--dry-run", "--remove"],
  );
  assertEquals(registries, [{ host: "a.test", isPlain: false }, { host: "b.test:5000", isPlain: true }]);
  assertEquals(rest.mirror?.origin, "http://10.0.0.1:1");
  assertEquals([rest.root, rest.dryRun, rest.remove], ["/host", true, true]);
});

Deno.test("--registry takes the registries that follow it, each once", () => {
  const { registries } = read("crio", "--registry", "a.test", "b.test", "A.test");
  assertEquals(registries.map(({ host }) => host), ["a.test", "b.test"]);
});

const BAD: [string[], ...string[]][] = [
  [[], "no runtime", "containerd, docker, podman, crio"],
  [["dockre"], "dockre", "did you mean docker?"],
  [["kubernetes"], "kubernetes", "containerd"],
  [["docker", "podman"], "podman", "one runtime"],
  [["docker", "--registry"], "--registry", "missing"],
  [["docker", "--registry", "a/b"], "--registry", "a/b"],
  [["docker", "--root", ""], "--root", "empty"],
  [["docker", "--mirror", "127.0.0.1:65001"], "--mirror", "http://127.0.0.1:65001"],
  [["docker", "--mirror", "ftp://h"], "--mirror"],
  [["docker", "--mirror", "http://h/v2"], "--mirror", "path"],
  [["docker", "--mirror", "http://u:secret@h"], "--mirror", "user"],
  [["docker", "--dry-run=maybe"], "--dry-run", "true or false"],
  [["docker", "--output", "/x"], "--output"],
];
for (const [args, ...words] of BAD) {
  Deno.test(`setup ${args.join(" ")} is wrong use, with the reason`, async () => {
    const error = await Promise.resolve().then(() => read(...args)).then(() => null, (error) => error);
    const { exitCode, line } = await explain(error);
    assertEquals(exitCode, 2, line ?? "");
    for (const word of words) assert(line?.includes(word), `${line} does not say ${word}`);
    assertEquals(line?.includes("secret"), false);
  });
}
