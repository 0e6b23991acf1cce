/**
 * A network of this machine's own: every host in a network namespace, joined
 * by a bridge (one for each rack, with a link between them) that stands in a
 * namespace too. Links are limited by tbf at both ends. Nothing of the
 * machine's network is touched and no route leads out.
 *
 * Keeps: names carry the id of the process that made them; what a killed
 * process has left is removed by the next one.
 */

/**
 * Queue in front of a limit on the way, and what may pass at once. 250 ms at 50 Mbit/s is a queue of 1,000 packets of
 * 1,500 bytes, Linux' own; with 50 ms a tenth of what 16 hosts sent to each other was sent again.
 */
const QUEUE_MS = 250;
const BURST = "64kb";
/**
 * Queue in a host itself: as on a real one the sockets wait for the card, and nothing is dropped before the
 * wire. With 50 ms of it, 16 streams made 150,000 retransmissions for 23,000 segments.
 */
const OWN_QUEUE_MS = 2000;
/**
 * Jumbo frames: two cores have to play all cards and the switch. With 1,500 the network took as much CPU as the
 * programs (aria2 9 CPU s/GB instead of 5, Lacewing 21 instead of 16), and A was a figure about the CPU.
 */
const MTU = ["mtu", "9000"];
const PREFIX = "lwb";

/** One host's link; bits per second, 0 is no limit. */
export interface HostLink {
  readonly name: string;
  readonly up: number;
  readonly down: number;
  /** Bridge that it hangs on, from 0. */
  readonly rack?: number;
}

export interface NetworkOptions {
  readonly hosts: readonly HostLink[];
  /** Bits per second between the racks, where there are two. */
  readonly trunk?: number;
}

/** Bytes that went over a host's link, headers included. */
export interface LinkCounter {
  readonly sent: number;
  readonly received: number;
}

export class BenchNetwork implements AsyncDisposable {
  readonly #addresses = new Map<string, string>();
  #isDisposed = false;

  private constructor(private readonly id: string, readonly hosts: readonly HostLink[]) {
    for (const [index, { name }] of hosts.entries()) this.#addresses.set(name, `10.79.1.${index + 1}`);
  }

  /** Makes the network; on failure nothing of it stays. */
  static async create({ hosts, trunk = 0 }: NetworkOptions): Promise<BenchNetwork> {
    if (hosts.length > 200) throw new RangeError(`Cannot make a network of ${hosts.length} hosts: at most 200`);
    await removeLeftovers();
    const network = new BenchNetwork(`${PREFIX}${Deno.pid}`, hosts);
    try {
      await network.#build(trunk);
      return network;
    } catch (error) {
      await network[Symbol.asyncDispose]();
      throw error;
    }
  }

  address(host: string): string {
    const address = this.#addresses.get(host);
    if (address === undefined) throw new RangeError(`Cannot find host ${host} in the network`);
    return address;
  }

  /** The command line that runs a command on a host. */
  on(host: string, command: readonly string[]): string[] {
    this.address(host);
    return ["nsenter", `--net=/run/netns/${this.#namespace(host)}`, ...command];
  }

  /** What each host has sent and received so far. */
  async counters(): Promise<Map<string, LinkCounter>> {
    const links = await this.#links();
    return new Map(this.hosts.map(({ name }, index) => {
      const { rx, tx } = links.get(`v${index}`)!;
      return [name, { sent: rx, received: tx }];
    }));
  }

  /** Bytes from the first rack to the second so far, and back. */
  async trunkBytes(): Promise<{ there: number; back: number }> {
    const trunk = (await this.#links()).get("trunk0");
    return { there: trunk?.tx ?? 0, back: trunk?.rx ?? 0 };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    await removeNamespaces((name) => name.startsWith(`${this.id}-`));
  }

  async #build(trunk: number): Promise<void> {
    const bridges = this.#namespace("sw");
    await run(["ip", "netns", "add", bridges]);
    const racks = new Set(this.hosts.map(({ rack = 0 }) => rack));
    for (const rack of racks) {
      await run(["ip", "-n", bridges, "link", "add", `br${rack}`, ...MTU, "type", "bridge"]);
      await run(["ip", "-n", bridges, "link", "set", `br${rack}`, "up"]);
    }
    for (const [index, host] of this.hosts.entries()) await this.#addHost(host, index);
    if (racks.size < 2) return;
    await run(["ip", "-n", bridges, "link", "add", "trunk0", ...MTU, "type", "veth", "peer", "name", "trunk1", ...MTU]);
    for (const rack of [0, 1]) {
      await run(["ip", "-n", bridges, "link", "set", `trunk${rack}`, "master", `br${rack}`, "up"]);
      await limit(bridges, `trunk${rack}`, trunk, QUEUE_MS);
    }
  }

  async #addHost({ name, up, down, rack = 0 }: HostLink, index: number): Promise<void> {
    const [bridges, own, port] = [this.#namespace("sw"), this.#namespace(name), `v${index}`];
    await run(["ip", "netns", "add", own]);
    const [veth, peer] = [["type", "veth"], ["peer", "name", "eth0", ...MTU, "netns", own]];
    await run(["ip", "-n", bridges, "link", "add", port, ...MTU, ...veth, ...peer]);
    await run(["ip", "-n", own, "addr", "add", `${this.address(name)}/16`, "dev", "eth0"]);
    await run(["ip", "-n", own, "link", "set", "lo", "up"]);
    await run(["ip", "-n", own, "link", "set", "eth0", "up"]);
    await run(["ip", "-n", bridges, "link", "set", port, "master", `br${rack}`, "up"]);
    await limit(own, "eth0", up, OWN_QUEUE_MS);
    await limit(bridges, port, down, QUEUE_MS);
  }

  async #links(): Promise<Map<string, { rx: number; tx: number }>> {
    const text = await run(["ip", "-n", this.#namespace("sw"), "-s", "-j", "link", "show"]);
    const links: { ifname: string; stats64: { rx: { bytes: number }; tx: { bytes: number } } }[] = JSON.parse(text);
    return new Map(links.map(({ ifname, stats64: { rx, tx } }) => [ifname, { rx: rx.bytes, tx: tx.bytes }]));
  }

  #namespace(host: string): string {
    return `${this.id}-${host}`;
  }
}

/** Limits what leaves through a device. */
async function limit(namespace: string, device: string, bitsPerSecond: number, queueMs: number): Promise<void> {
  if (bitsPerSecond === 0) return;
  const shape = ["rate", `${bitsPerSecond}bit`, "burst", BURST, "latency", `${queueMs}ms`];
  await run(["tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", "tbf", ...shape]);
}

/** Removes the networks of this process, whatever still runs in them. */
export function removeAll(): Promise<void> {
  return removeNamespaces((name) => name.startsWith(`${PREFIX}${Deno.pid}-`));
}

/** Removes the namespaces of benches that were killed. */
async function removeLeftovers(): Promise<void> {
  await removeNamespaces((name) => {
    const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
    return pid !== undefined && (Number(pid) === Deno.pid || !isAlive(Number(pid)));
  });
}

/** Ends what runs in the namespaces, and deletes them. */
async function removeNamespaces(isMeant: (name: string) => boolean): Promise<void> {
  const list = await run(["ip", "netns", "list"]);
  const names = list.split("\n").map((line) => line.split(" ")[0]!).filter((name) => name !== "" && isMeant(name));
  for (const name of names) {
    const pids = await run(["ip", "netns", "pids", name]).catch(() => "");
    for (const pid of pids.split("\n").map(Number).filter((it) => it > 0 && it !== Deno.pid)) {
      try {
        Deno.kill(pid, "SIGKILL");
      } catch {
        // It has ended in the meantime.
      }
    }
  }
  for (const name of names) await run(["ip", "netns", "del", name]).catch(() => {});
}

function isAlive(pid: number): boolean {
  try {
    Deno.statSync(`/proc/${pid}`);
    return true;
  } catch {
    return false;
  }
}

/** Runs a command to its end. @returns its stdout */
export async function run([command, ...args]: readonly string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(command!, { args, stdin: "null" }).output();
  if (success) return new TextDecoder().decode(stdout);
  throw new Error(`${command} ${args.join(" ")}: ${new TextDecoder().decode(stderr).trim()}`);
}
