/**
 * The client's own download from the origin, for where no daemon can do it:
 * with the same flags, the same output and the same checks. What is interrupted
 * is kept beside the output, where the next run can tell that it still fits.
 */
import type { Clock } from "../../peer/core/clock.ts";
import type { RateLimiter } from "../../peer/core/rate_limit.ts";
import { type ErrorCode, LacewingError } from "../../peer/core/errors.ts";
import { taskId } from "../../peer/core/task_id.ts";
import { formatBytes } from "../../peer/core/units.ts";
import type { Source } from "../../peer/source/source.ts";
import { DirectContent } from "../direct/direct_content.ts";
import type { Delivery } from "../delivery.ts";
import { PartialFile } from "../partial_file.ts";
import type { Progress } from "../progress.ts";
import type { DownloadSettings } from "../settings.ts";

export interface DirectDeps {
  readonly source: Source;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Default: one at the settings' own rate. */
  readonly limiter?: RateLimiter;
  readonly onProgress: (progress: Progress) => void;
  /** Says a line on stderr. */
  readonly say: (message: string) => void;
}

/** After these the same command may go on where this one stopped; anything else makes the bytes worthless. */
const PASSING: readonly ErrorCode[] = ["network", "timeout", "source_failed"];

/** Downloads to the delivery, and finishes it. @returns bytes delivered, and how the origin dates the content */
export async function downloadDirect(
  settings: DownloadSettings,
  delivery: Delivery,
  deps: DirectDeps,
): Promise<{ length: number; lastModified: string | null }> {
  const { url } = settings;
  using partial = delivery.path === null
    ? null
    : await PartialFile.open(delivery.path, { taskId: taskId(url, settings), url });
  try {
    await using content = await DirectContent.open(deps, settings, partial?.found ?? null);
    const { facts, resumed: have, total } = content;
    if (facts !== null) await partial?.begin(facts, have);
    if (have > 0) deps.say(`going on at ${formatBytes(have)}, where an earlier run stopped`);
    const length = await delivery.writeAll(() => content.read(), {
      onWritten: (done) => deps.onProgress({ total, done, fromPeers: 0 }),
      partial: facts === null ? null : partial,
      have,
    });
    await delivery.finish(length);
    // What could not be gone on with.
    partial?.remove();
    return { length, lastModified: content.lastModified };
  } catch (error) {
    const mayGoOn = deps.signal.aborted || (error instanceof LacewingError && PASSING.includes(error.code));
    if (!mayGoOn) partial?.remove();
    else if (partial?.isBegun && delivery.written > 0) {
      deps.say(`${formatBytes(delivery.written)} are kept in ${partial.path}; the same command goes on from there`);
    }
    throw error;
  }
}
