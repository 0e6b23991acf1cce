/**
 * Podman with a store of a test's own: pulls by registries.conf and an
 * authfile, as a host is set up whose mirror wants credentials. Leaves
 * nothing outside of its folder.
 */
import { type ChildResult, runToEnd } from "./child.ts";

export interface PodmanOptions {
  /** An existing folder that the caller removes. */
  readonly folder: string;
  /** Text of registries.conf. */
  readonly registries: string;
  /** `user:password` by registry or mirror, as `HOST:PORT`. */
  readonly credentials: Readonly<Record<string, string>>;
}

/** Pulls an image. @returns the outcome; stdout is the id of the image, the hex of its config's digest */
export async function podmanPull(reference: string, options: PodmanOptions): Promise<ChildResult> {
  const { folder, registries, credentials } = options;
  const auths = Object.entries(credentials).map(([host, text]) => [host, { auth: btoa(text) }]);
  const write = (name: string, text: string) => Deno.writeTextFile(`${folder}/${name}`, text);
  await Promise.all([
    write("registries.conf", registries),
    write("auth.json", JSON.stringify({ auths: Object.fromEntries(auths) })),
    write("policy.json", `{"default":[{"type":"insecureAcceptAnything"}]}`),
    // Locks in shared memory would stay after it, and one among the machine's networks.
    write(
      "containers.conf",
      `[engine]\nlock_type = "file"\nevents_logger = "none"\n[network]\nnetwork_config_dir = "${folder}/networks"\n`,
    ),
  ]);
  const own = ["--root", `${folder}/root`, "--runroot", `${folder}/run`, "--tmpdir", `${folder}/tmp`];
  const store = [...own, "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"];
  const trust = ["--authfile", `${folder}/auth.json`, "--signature-policy", `${folder}/policy.json`];
  return await runToEnd([...store, "pull", "--quiet", ...trust, reference], {
    command: "podman",
    env: {
      CONTAINERS_REGISTRIES_CONF: `${folder}/registries.conf`,
      CONTAINERS_CONF: `${folder}/containers.conf`,
      TMPDIR: folder,
    },
  });
}
