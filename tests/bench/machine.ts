/** One line about the machine that a figure comes from. */

export function machineFacts(): string {
  const cpu = /^model name\s*: (.+)$/m.exec(read("/proc/cpuinfo"))?.[1] ?? "unknown CPU";
  const memoryGib = Math.round(Number(/^MemTotal:\s+(\d+)/m.exec(read("/proc/meminfo"))?.[1] ?? 0) / 2 ** 20);
  const load = Deno.loadavg()[0]!.toFixed(1);
  return `${navigator.hardwareConcurrency} x ${cpu}, ${memoryGib} GiB, Linux ${Deno.osRelease()}, ` +
    `Deno ${Deno.version.deno}, load before the start ${load}, ${new Date().toISOString().slice(0, 10)}`;
}

function read(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return "";
  }
}
