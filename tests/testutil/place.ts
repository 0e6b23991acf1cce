/** A temporary folder of one test, and a client that finds no daemon in it. */
import type { ChildResult } from "./child.ts";
import { runClient } from "./process.ts";

export class Place implements AsyncDisposable {
  readonly folder = Deno.makeTempDirSync({ prefix: "lacewing-test-" });

  #homes = 0;

  constructor() {
    Deno.mkdirSync(this.path("out"));
    Deno.writeTextFileSync(this.path("no-folder"), "");
  }

  path(name: string): string {
    return `${this.folder}/${name}`;
  }

  /** Names of all that stands in the output folder, hidden files too. */
  outputs(): string[] {
    return [...Deno.readDirSync(this.path("out"))].map(({ name }) => name).sort();
  }

  /** Flags under which no daemon runs, and none can be started; each call has its own work home. */
  withoutDaemon(): string[] {
    const home = this.path(`home-${this.#homes++}`);
    return ["--daemon-sock", this.path("no-folder/daemon.sock"), "--workhome", home, "--logdir", this.path("log")];
  }

  /** Runs the client without a daemon, in the output folder. */
  direct(...args: string[]): Promise<ChildResult> {
    return runClient([...this.withoutDaemon(), ...args], { cwd: this.path("out") });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }
}
