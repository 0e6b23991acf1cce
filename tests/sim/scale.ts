/**
 * What one scheduler can bear: member events per second and memory per member
 * of the pure state machine, and 1,000 hosts on real WebSockets against one
 * process. `deno run -A --v8-flags=--expose-gc tests/sim/scale.ts [--members 1000] [--sockets 1000] [--json]`.
 */
import { parseArgs } from "@std/cli/parse-args";
import type { HostMessage } from "../../peer/core/wire/scheduler.ts";
import { Scheduler } from "../../manager/scheduler/scheduler.ts";
import { seededRandom } from "../../peer/core/clock.ts";
import { coldWave, metaOf } from "./config.ts";
import { type PureResult, scaleLines, type ScaleResult } from "./scale_lines.ts";
import { measureSockets } from "./scale_sockets.ts";
import { usage } from "./usage.ts";
import { digestText, SPEC } from "./words.ts";

const CONFIG = coldWave(2);
const PIECES = 256;
/** A whole wave through the state machine: joins, leases, pieces, flushes, ticks, completes, leaves. */
class Wave {
  readonly #scheduler = new Scheduler(CONFIG.scheduler, seededRandom(1));
  readonly #leases: { hostId: string; leaseId: number; first: number; count: number }[] = [];
  #nowMs = 0;
  events = 0;
  sent = 0;

  constructor(private readonly ids: readonly string[]) {}

  join(): void {
    for (const id of this.ids) {
      this.#apply({ type: "connected", connectedAt: "2026-01-01T00:00:00Z", host: factsOf(id) });
      this.#say(id, { type: "join", task: SPEC, piece_count: 0, can_source: true, anonymous: false, partial: false });
    }
  }

  /** Every piece is read by whoever has the lease; a second of virtual time has 24 of them. */
  download(): void {
    this.#say(this.ids[0]!, { type: "meta", task_id: SPEC.task_id, meta: metaOf(CONFIG) });
    let pieces = 0;
    for (let lease = this.#leases.shift(); lease !== undefined; lease = this.#leases.shift()) {
      const { hostId, leaseId } = lease;
      for (let number = lease.first; number < lease.first + Math.max(1, lease.count); number++) {
        this.#report(hostId, number);
        this.#nowMs += 42;
        if (this.#nowMs >= (this.#scheduler.flushAtMs ?? Infinity)) this.#apply({ type: "flush" });
        if ((pieces += 1) % 5 === 0) this.#apply({ type: "tick" });
      }
      this.#say(hostId, { type: "lease_end", task_id: SPEC.task_id, lease_id: leaseId });
    }
  }

  /** What members say besides: a heartbeat, a cry of a few, and that they are done. */
  finish(): void {
    for (const [index, id] of this.ids.entries()) {
      this.#say(id, { type: "heartbeat", uploads: 1, downloads: 1, free_bytes: 1 });
      if (index % 50 === 0) {
        this.#say(id, { type: "starving", task_id: SPEC.task_id, generation: "g1", pieces: [1, 2, 3] });
      }
    }
    for (const id of this.ids) this.#say(id, { type: "complete", task_id: SPEC.task_id, generation: "g1" });
  }

  leave(): void {
    for (const id of this.ids) this.#say(id, { type: "leave", task_id: SPEC.task_id });
  }

  get knownPieces(): number {
    return this.#scheduler.tasks.get(SPEC.task_id)?.digests.count ?? 0;
  }

  #report(hostId: string, number: number): void {
    const pieces: [number, string][] = [[number, digestText(number, true)]];
    this.#say(hostId, { type: "pieces", task_id: SPEC.task_id, generation: "g1", pieces });
  }

  #say(hostId: string, message: HostMessage): void {
    this.#apply({ type: "message", hostId, message });
  }

  #apply(event: Parameters<Scheduler["apply"]>[0]): void {
    this.events += 1;
    for (const effect of this.#scheduler.apply(event, this.#nowMs)) {
      this.sent += 1;
      if (effect.type !== "send" || effect.message.type !== "lease") continue;
      const { lease_id: leaseId, first, count } = effect.message;
      this.#leases.push({ hostId: effect.hostId, leaseId, first, count });
    }
  }
}

function factsOf(id: string) {
  const type = "normal" as const;
  return { id, hostname: id, ip: "10.0.0.1", upload_port: 1, type, idc: "", location: "", platform: "", version: "" };
}

function measurePure(members: number): PureResult {
  const ids = Array.from({ length: members }, (_, index) => `h${String(index).padStart(6, "0")}`);
  new Wave(ids.slice(0, 200)).join();
  collect();
  const before = Deno.memoryUsage().heapUsed;
  const wave = new Wave(ids);
  const start = usage().cpuSeconds;
  wave.join();
  wave.download();
  if (wave.knownPieces !== PIECES) throw new Error(`Cannot measure: ${wave.knownPieces} pieces known, want ${PIECES}`);
  const paused = usage().cpuSeconds;
  collect();
  const bytes = Deno.memoryUsage().heapUsed - before;
  const resumed = usage().cpuSeconds;
  wave.finish();
  wave.leave();
  // CPU and not the wall's clock: others may use the machine.
  const seconds = usage().cpuSeconds - start - (resumed - paused);
  return {
    members,
    events: wave.events,
    eventsPerSecond: wave.events / seconds,
    sent: wave.sent,
    bytesPerMember: bytes / members,
  };
}

/** Present with `--v8-flags=--expose-gc`; without it the figure of memory holds garbage too. */
function collect(): void {
  (globalThis as { gc?: () => void }).gc?.();
}

if (import.meta.main) {
  const options: Record<string, unknown> = parseArgs(Deno.args, { string: ["members", "sockets"], boolean: ["json"] });
  const counts = String(options.members ?? "100,1000,10000").split(",").map(Number);
  // The first wave warms the compiler up, as a scheduler's first minute does.
  measurePure(1000);
  const result: ScaleResult = {
    pure: counts.map(measurePure),
    sockets: await measureSockets(Number(options.sockets ?? 1000)),
  };
  console.log(options.json === true ? JSON.stringify(result) : scaleLines(result));
}
