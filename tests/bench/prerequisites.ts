/** What the benches need of the machine. */

const NEEDED = ["ip", "tc", "nsenter", "nginx", "curl", "bash"];
const WANTED = ["aria2c"];

export interface Missing {
  /** Why nothing can be measured here; empty when it can. */
  readonly reasons: readonly string[];
  /** Rivals that are not installed. */
  readonly rivals: readonly string[];
}

export async function missing(): Promise<Missing> {
  const rivals = await absent(WANTED);
  if (Deno.build.os !== "linux") return { reasons: [`it needs Linux, this is ${Deno.build.os}`], rivals };
  if (Deno.uid() !== 0) return { reasons: ["network namespaces need root"], rivals };
  const tools = await absent(NEEDED);
  if (tools.length > 0) return { reasons: [`not installed: ${tools.join(", ")}`], rivals };
  const problem = await namespaceProblem();
  return { reasons: problem === null ? [] : [problem], rivals };
}

/** Those of the programs that are here; a name may say more after its first word. */
export async function installed<Name extends string>(names: readonly Name[]): Promise<Name[]> {
  const gone = await absent(names.map((name) => name.split(/\W/)[0]!).filter((tool) => tool !== "lacewing"));
  return names.filter((name) => !gone.includes(name));
}

async function absent(tools: readonly string[]): Promise<string[]> {
  const found = await Promise.all(tools.map(async (tool) => {
    const { success } = await new Deno.Command("sh", { args: ["-c", `command -v ${tool}`] }).output();
    return success;
  }));
  return tools.filter((_, index) => !found[index]);
}

/** Makes a namespace with a limited link in it, and removes it: containers often may not. */
async function namespaceProblem(): Promise<string | null> {
  const name = `lwb${Deno.pid}-try`;
  const script = `ip netns add ${name} && ip -n ${name} link add x type veth peer name y && ` +
    `tc -n ${name} qdisc add dev x root tbf rate 1mbit burst 10kb latency 50ms && nsenter --net=/run/netns/${name} true`;
  const { success, stderr } = await new Deno.Command("sh", { args: ["-c", script] }).output();
  await new Deno.Command("ip", { args: ["netns", "del", name], stderr: "null" }).output();
  if (success) return null;
  return `network namespaces do not work here: ${new TextDecoder().decode(stderr).trim().split("\n")[0]}`;
}
