/** Reads profiles with pprof's own tool, where Go is installed; since Go 1.25 its first use builds it, which takes a while. */

const GO = ["/usr/local/go/bin/go", "go"];

/** What `go tool pprof -top` says of a profile; null where there is no Go. Rejects when pprof cannot read it. */
export async function pprofTop(profile: Uint8Array): Promise<string | null> {
  const path = await Deno.makeTempFile({ suffix: ".pb.gz" });
  try {
    await Deno.writeFile(path, profile);
    for (const command of GO) {
      const output = await run(command, ["tool", "pprof", "-top", path]);
      if (output !== null) return output;
    }
    return null;
  } finally {
    await Deno.remove(path);
  }
}

async function run(command: string, args: string[]): Promise<string | null> {
  try {
    const { success, stdout, stderr } = await new Deno.Command(command, { args, stdin: "null" }).output();
    const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
    if (!success) throw new Error(`pprof cannot read the profile:\n${text}`);
    return text;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}
