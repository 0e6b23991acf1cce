/** The version of this Lacewing: the one place that says it; `deno.json` repeats it for packagers. */

export const VERSION = "0.1.0";
