/**
 * The programs that pull images on real hosts, each with folders of its own
 * and a mirror in its own configuration. Whether a tool is there is for the
 * caller to ask. `ctr` is in `containerd.ts`, podman in `podman.ts`.
 */
import { runBytes } from "./child.ts";

export interface Pulled {
  readonly code: number;
  readonly stderr: string;
}

/** Where a pull goes: the registry's name, its mirror, and itself. */
export interface Way {
  /** Name of the registry in references. */
  readonly registry: string;
  /** `HOST:PORT` of the mirror. */
  readonly mirror: string;
  /** `HOST:PORT` of the registry itself. */
  readonly origin: string;
}

/** A registries.conf that asks the mirror, and then the registry itself. */
export function registriesConf({ registry, mirror, origin }: Way): string {
  return `[[registry]]
prefix = "${registry}"
location = "${origin}"
insecure = true
  [[registry.mirror]]
  location = "${mirror}/${registry}"
  insecure = true
`;
}

/** Copies one platform of an image into a folder: `dir:FOLDER/copy`. */
export async function skopeoPull(folder: string, reference: string, way: Way): Promise<Pulled> {
  await writePolicy(folder, way);
  const own = ["--policy", `${folder}/policy.json`, "--registries-conf", `${folder}/registries.conf`];
  const platform = ["--override-os", "linux", "--override-arch", "amd64", "--tmpdir", folder];
  return await runBytes("skopeo", {
    args: [...own, ...platform, "copy", `docker://${way.registry}/${reference}`, `dir:${folder}/copy`],
  });
}

async function writePolicy(folder: string, way: Way): Promise<void> {
  await Deno.mkdir(folder, { recursive: true });
  await Deno.writeTextFile(`${folder}/policy.json`, `{"default":[{"type":"insecureAcceptAnything"}]}`);
  await Deno.writeTextFile(`${folder}/registries.conf`, registriesConf(way));
}

/** Docker's daemon on a containerd that runs, with a mirror for Docker Hub; it knows no other registry's mirror. */
export class Dockerd implements AsyncDisposable {
  #log = "";
  readonly #ended: Promise<unknown>;
  readonly #process: Deno.ChildProcess;

  private constructor(private readonly folder: string) {
    this.#process = new Deno.Command("dockerd", {
      args: ["--config-file", `${folder}/daemon.json`],
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    this.#ended = Promise.all([this.#process.status, this.#collect()]);
  }

  /** @returns null, with the reason, where it does not come up */
  static async start(
    { folder, mirror, containerd }: { folder: string; mirror: string; containerd: string },
  ): Promise<{ dockerd: Dockerd } | { reason: string }> {
    await Deno.mkdir(folder, { recursive: true });
    const config = {
      "data-root": `${folder}/data`,
      "exec-root": `${folder}/exec`,
      pidfile: `${folder}/pid`,
      hosts: [`unix://${folder}/d.sock`],
      containerd,
      bridge: "none",
      iptables: false,
      "storage-driver": "vfs",
      "registry-mirrors": [`http://${mirror}`],
    };
    await Deno.writeTextFile(`${folder}/daemon.json`, JSON.stringify(config));
    const dockerd = new Dockerd(folder);
    for (let attempt = 0; attempt < 200; attempt++) {
      if ((await dockerd.docker("version")).code === 0) return { dockerd };
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await dockerd[Symbol.asyncDispose]();
    return { reason: `dockerd does not start here: ${dockerd.#log.slice(-400)}` };
  }

  async docker(...args: string[]): Promise<Pulled> {
    return await runBytes("docker", {
      args: ["--host", `unix://${this.folder}/d.sock`, "--config", this.folder, ...args],
    });
  }

  async pull(reference: string): Promise<Pulled> {
    const pulled = await this.docker("pull", "--quiet", reference);
    await this.docker("rmi", "--force", reference);
    return pulled;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGTERM");
    await this.#ended;
  }

  async #collect(): Promise<void> {
    for await (const text of this.#process.stderr.pipeThrough(new TextDecoderStream())) {
      this.#log = (this.#log + text).slice(-20_000);
    }
  }
}
