/**
 * The client's own download from the origin, for where no daemon can do it:
 * with the same flags, the same output and the same checks.
 */
import type { Clock } from "../../peer/core/clock.ts";
import type { Source } from "../../peer/source/source.ts";
import { DirectContent } from "../direct/direct_content.ts";
import type { Delivery } from "../delivery.ts";
import type { Progress } from "../progress.ts";
import type { DownloadSettings } from "../settings.ts";

export interface DirectDeps {
  readonly source: Source;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: Progress) => void;
}

/** Downloads to the delivery. @returns bytes delivered */
export async function downloadDirect(
  settings: DownloadSettings,
  delivery: Delivery,
  deps: DirectDeps,
): Promise<number> {
  await using content = await DirectContent.open(deps, settings);
  const { total } = content;
  return await delivery.writeAll(() => content.read(), (done) => deps.onProgress({ total, done, fromPeers: 0 }));
}
