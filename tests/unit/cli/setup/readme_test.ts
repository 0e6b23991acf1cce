/** The guides in README.md: every command line is one, every configuration is accepted by its own parser. */
// covers: cli/setup/containerd.ts, cli/setup/registries_conf.ts
import { assert, assertEquals } from "@std/assert";
import { parse } from "@std/yaml";
import { parseCommand } from "../../../../cli/parse.ts";
import { planContainerd } from "../../../../cli/setup/containerd.ts";
import { planDocker } from "../../../../cli/setup/docker.ts";
import { outsideOf } from "../../../../cli/setup/marked_block.ts";
import { planRegistriesConf } from "../../../../cli/setup/registries_conf.ts";
import { readSetupSettings } from "../../../../cli/setup/settings.ts";
import { readToml } from "../../../../cli/setup/toml.ts";
import { loadConfig } from "../../../../manager/config.ts";
import { parseDaemonConfig } from "../../../../peer/config.ts";
import { MemoryFiles, order } from "./memory_files.ts";

const README = await Deno.readTextFile(new URL("../../../../README.md", import.meta.url));

function blocks(language: string, heading: string): string[] {
  const text = README.split(`\n### ${heading}\n`)[1]?.split(/\n##+ /)[0] ?? "";
  return [...text.matchAll(new RegExp("^```" + language + "\\n([^]*?)^```$", "gm"))].map((match) => match[1]!);
}

const RUNTIMES = "Container runtimes";

async function written(files: MemoryFiles, plan: Promise<Parameters<MemoryFiles["apply"]>[0]>): Promise<string> {
  const { changes } = await plan;
  files.apply(await plan);
  return files.texts.get(changes[0]!.path) ?? "";
}

Deno.test("the guides show the files that setup writes", async () => {
  const [hosts, registries] = blocks("toml", RUNTIMES);
  const files = new MemoryFiles();
  const ours = await written(files, planContainerd(order("containerd"), files));
  assertEquals(readToml(hosts!, "guide"), readToml(ours, "setup"));
  const conf = await written(
    files,
    planRegistriesConf(order("podman", { registries: ["registry.example.com"] }), files),
  );
  assertEquals(readToml(registries!, "guide"), readToml(conf, "setup"));
  assertEquals(outsideOf(conf), "");
  const json = await written(files, planDocker(order("docker"), files));
  assertEquals(JSON.parse(blocks("json", RUNTIMES)[0]!), JSON.parse(json));
});

Deno.test("the proxy's configuration in the guide is one", () => {
  const [yaml] = blocks("yaml", RUNTIMES);
  assertEquals(parseDaemonConfig(yaml!, "README.md").proxy?.registryMirror.registries.length, 1);
});

Deno.test("every configuration in README.md is one of the daemon's, or manifests for Kubernetes", () => {
  const yamls = [...README.matchAll(/^```yaml\n([^]*?)^```$/gm)].map((match) => match[1]!);
  const configs = yamls.filter((text) => !text.startsWith("apiVersion:"));
  assertEquals([yamls.length - configs.length, configs.length > 2], [1, true]);
  for (const text of configs) parseDaemonConfig(text, "README.md");
});

// deno-lint-ignore no-explicit-any
type Manifest = any;
const MANIFESTS = blocks("yaml", "Kubernetes")[0]!.split(/^---$/m).map((text) => parse(text) as Manifest);
const manifest = (kind: string): Manifest => MANIFESTS.find((one) => one.kind === kind);

Deno.test("the manifests for Kubernetes are the ones that belong together, each in the namespace", () => {
  const kinds = MANIFESTS.map(({ kind }) => kind);
  assertEquals(kinds, ["Namespace", "Secret", "Service", "StatefulSet", "DaemonSet"]);
  for (const { kind, metadata } of MANIFESTS) {
    assertEquals(kind === "Namespace" || metadata.namespace === "lacewing", true, kind);
  }
  for (const kind of ["StatefulSet", "DaemonSet"]) {
    const { selector, template } = manifest(kind).spec;
    assertEquals(selector.matchLabels, template.metadata.labels, kind);
    const claims = manifest(kind).spec.volumeClaimTemplates ?? [];
    const volumes = [...template.spec.volumes, ...claims.map(({ metadata }: Manifest) => metadata)]
      .map(({ name }: { name: string }) => name);
    for (const container of [...template.spec.containers, ...template.spec.initContainers ?? []]) {
      for (const { name } of container.volumeMounts) {
        assert(volumes.includes(name), `${container.name}: no volume ${name}`);
      }
    }
  }
  assertEquals(manifest("Service").spec.selector, manifest("StatefulSet").spec.template.metadata.labels);
});

Deno.test("what a manifest names of another part is there: ports, keys of the secret, services, programs", () => {
  const [dockerfile] = blocks("dockerfile", "Kubernetes");
  const programs = /^COPY (.*) \/usr\/local\/bin\/$/m.exec(dockerfile!)![1]!.split(" ")
    .map((path) => path.replace("dist/", ""));
  const { metadata, stringData } = manifest("Secret");
  const images = new Set<string>();
  for (const kind of ["StatefulSet", "DaemonSet"]) {
    const { containers, initContainers = [], volumes, ...pod } = manifest(kind).spec.template.spec;
    for (const { image, command, volumeMounts, ports = [], ...container } of [...initContainers, ...containers]) {
      images.add(image);
      assert(programs.includes(command[0]), command[0]);
      const names = ports.map(({ name }: Manifest) => name);
      for (const probe of [container.readinessProbe, container.livenessProbe].filter((one) => one !== undefined)) {
        const { port, host } = probe.httpGet;
        // A port that is not the pod's own is one of the node, which the kubelet reaches on its loopback.
        assert(names.includes(port) || (pod.hostNetwork && host === "127.0.0.1"), `${container.name}: ${port}`);
      }
      const paths = volumeMounts.map(({ mountPath }: Manifest) => mountPath);
      assertEquals(new Set(paths).size, paths.length, container.name);
    }
    const mounts = [...initContainers, ...containers].flatMap(({ volumeMounts }: Manifest) => volumeMounts);
    for (const { name, secret, hostPath } of volumes) {
      assert(mounts.some((mount: Manifest) => mount.name === name), `${name} is mounted nowhere`);
      if (hostPath !== undefined) assert(hostPath.path.startsWith("/"), name);
      else {
        assertEquals(secret.secretName, metadata.name);
        for (const { key } of secret.items) assert(Object.hasOwn(stringData, key), key);
      }
    }
  }
  assertEquals(images.size, 1);
  const service = manifest("Service");
  assertEquals(manifest("StatefulSet").spec.serviceName, service.metadata.name);
  const [{ ports }] = manifest("StatefulSet").spec.template.spec.containers;
  assertEquals(service.spec.ports[0].targetPort, ports[0].name);
});

Deno.test("the configurations in the manifests are accepted, and agree with each other", () => {
  const { "manager.yaml": managerText, "client.yaml": clientText } = manifest("Secret").stringData;
  const [container] = manifest("StatefulSet").spec.template.spec.containers;
  const [name, flag, file, workhomeFlag, workhome, ...rest] = container.command;
  assertEquals([name, flag, workhomeFlag, rest], ["lacewing-manager", "--config", "--workhome", ["--console"]]);
  const manager = loadConfig({ config: file, workhome }, {
    env: () => undefined,
    readFile: (path) => path === file ? managerText : null,
    writable: () => true,
  });
  const client = parseDaemonConfig(clientText, "client.yaml");
  assertEquals(client.scheduler.manager.joinToken, manager.auth.joinToken);
  const { metadata, spec } = manifest("Service");
  const url = new URL(client.scheduler.manager.addr!);
  assertEquals([url.hostname, url.port], [`${metadata.name}.${metadata.namespace}.svc`, String(spec.ports[0].port)]);
  assertEquals(manager.server.listen, `0.0.0.0:${container.ports[0].containerPort}`);
  const [daemon] = manifest("DaemonSet").spec.template.spec.containers;
  for (const probe of [daemon.readinessProbe, daemon.livenessProbe]) {
    assertEquals([probe.httpGet.port, probe.httpGet.path], [client.health.tcpListen.port, "/healthz"]);
  }
});

Deno.test("the command lines in the manifests are ones, and the mirror is the daemon's proxy", () => {
  const { initContainers: [setup], containers: [daemon], hostNetwork, tolerations } =
    manifest("DaemonSet").spec.template.spec;
  const settings = readSetupSettings(parseCommand(setup.command.slice(1)));
  const { proxy } = parseDaemonConfig(manifest("Secret").stringData["client.yaml"], "client.yaml");
  assertEquals(settings.mirror?.host, `${proxy?.listenIP}:${proxy?.tcpListen.port}`);
  assertEquals(setup.volumeMounts[0].mountPath, `${settings.root}/etc/containerd`);
  const { command, values, positionals } = parseCommand(daemon.command.slice(1));
  assertEquals([setup.command[0], daemon.command[0], command, positionals], ["lacewing", "lacewing", "daemon", []]);
  for (const [option, name] of [["workhome", "work"], ["daemon-sock", "socket"], ["config", "config"]] as const) {
    const { mountPath } = daemon.volumeMounts.find((mount: Manifest) => mount.name === name);
    assert(String(values.get(option)).startsWith(mountPath), option);
  }
  assertEquals([hostNetwork, tolerations], [true, [{ operator: "Exists" }]]);
});

const COMMAND_LINES = [...README.matchAll(/`?(lacewing (?:setup|task) [^`\n]+)/g)].map((match) => match[1]!);
Deno.test("every setup and task command in the guides is understood", () => {
  assert(COMMAND_LINES.length > 5);
  for (const line of COMMAND_LINES) {
    const words = line.replace(/[[\]|,]/g, " ").replaceAll("RUNTIME", "crio").match(/'[^']*'|\S+/g)!.slice(1);
    const { command } = parseCommand(words.filter((word) => word !== "|"));
    assert(command === "setup" || command === "task", line);
  }
});
