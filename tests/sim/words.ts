/** The one task of a simulation, and digests that say at sight whether they are the right ones. */
import type { HostMessage, TaskMeta, TaskSpec } from "../../peer/core/wire/scheduler.ts";

export const SPEC: TaskSpec = { task_id: "a".repeat(64), url: "http://origin/content", tag: "", filter: "" };

const TEXTS = new Map<number, string>();

/** Digest of a piece; hosts share the texts. */
export function digestText(number: number, isRight: boolean): string {
  const key = isRight ? number : -1 - number;
  let text = TEXTS.get(key);
  if (text === undefined) TEXTS.set(key, text = (isRight ? "0" : "f") + number.toString(16).padStart(63, "0"));
  return text;
}

export function isRightDigest(text: string): boolean {
  return text.startsWith("0");
}

/** What a host says of the task when it joins. @param facts.meta undefined while it has nothing of it */
export function joinWords(
  facts: { meta: TaskMeta | undefined; heldCount: number; isComplete: boolean; canSource: boolean },
): HostMessage[] {
  const { meta, heldCount, isComplete, canSource } = facts;
  const join: HostMessage = {
    type: "join",
    task: SPEC,
    ...(meta === undefined ? {} : { meta }),
    piece_count: heldCount,
    can_source: canSource,
    anonymous: false,
    partial: false,
  };
  if (meta === undefined) return [join];
  return [{ type: "held", tasks: [{ ...SPEC, meta, piece_count: heldCount, complete: isComplete }] }, join];
}
