/** The configuration of a machine in memory, and an order as a command line gives it. */
import type { ConfigFiles, ProxyFacts, SetupOrder, SetupPlan } from "../../../../cli/setup/plan.ts";
import { readRegistry } from "../../../../cli/setup/registries.ts";

export class MemoryFiles implements ConfigFiles {
  readonly texts: Map<string, string>;

  constructor(texts: Readonly<Record<string, string>> = {}) {
    this.texts = new Map(Object.entries(texts));
  }

  read(path: string): Promise<string | null> {
    return Promise.resolve(this.texts.get(path) ?? null);
  }

  list(folder: string): Promise<string[]> {
    const below = [...this.texts.keys()].filter((path) => path.startsWith(`${folder}/`));
    return Promise.resolve([...new Set(below.map((path) => path.slice(folder.length + 1).split("/", 1)[0]!))].sort());
  }

  pathOf(path: string): string {
    return path;
  }

  /** As if the plan had been carried out, with its backups. */
  apply({ changes }: SetupPlan): void {
    for (const { path, before, after, keepsBackup } of changes) {
      if (keepsBackup && before !== null && before !== after) this.texts.set(`${path}.lacewing-backup`, before);
      if (after === null) this.texts.delete(path);
      else this.texts.set(path, after);
    }
  }
}

export const PROXY: ProxyFacts = {
  address: "127.0.0.1:65001",
  url: "https://index.docker.io/",
  dynamic: true,
  registries: [],
  password: false,
};

export function order(
  runtime: SetupOrder["runtime"],
  { registries = [], mirror = "http://127.0.0.1:65001", proxy = null, remove = false }: {
    registries?: readonly string[];
    mirror?: string;
    proxy?: ProxyFacts | null;
    remove?: boolean;
  } = {},
): SetupOrder {
  return { runtime, registries: registries.map(readRegistry), mirror: new URL(mirror), proxy, remove };
}
