/** Stands in for `@std/cli` where JSR is out of reach: only what this project imports. */
export * from "./cli_parse_args.ts";
