/** Stands in for `@std/crypto` where JSR is out of reach: only what this project imports. */
export * from "./crypto_timing_safe_equal.ts";
