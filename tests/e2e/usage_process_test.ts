/**
 * Wrong flags and wrong configuration files of the three programs, as processes:
 * exit code 2, one line on stderr that names file, path and the nearest key,
 * and nothing started or left behind. (The client's flags: client_commands_test.ts.)
 */
// covers: manager/main.ts, peer/main.ts
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { runToEnd } from "../testutil/child.ts";
import { denoRun } from "../testutil/process.ts";

interface Row {
  entry: string;
  args: string[];
  /** Text of the file behind `--config`. */
  config?: string;
  env?: Record<string, string>;
  words: string[];
}

const MANAGER = "manager/main.ts";
const PEER = "peer/main.ts";
const CLIENT = "cli/main.ts";
const URL = "http://127.0.0.1:9/f";

const FLAGS: Row[] = [
  { entry: MANAGER, args: ["--lisen", "127.0.0.1:0"], words: ["--lisen", "did you mean --listen?"] },
  { entry: MANAGER, args: ["--listen"], words: ["--listen", "needs a value"] },
  { entry: MANAGER, args: ["--listen", "nonsense"], words: ["listen", "HOST:PORT", "nonsense"] },
  { entry: MANAGER, args: ["--listen", "127.0.0.1:99999"], words: ["listen", "127.0.0.1:99999"] },
  { entry: MANAGER, args: ["--listen", "0.0.0.0:0"], words: ["0.0.0.0:0", "auth.joinToken"] },
  { entry: MANAGER, args: ["--role", "api"], words: ["--role", "api"] },
  { entry: MANAGER, args: ["--role", "cook"], words: ["cook", "api, scheduler, worker"] },
  { entry: MANAGER, args: ["--database-url", "mysql://h/d"], words: ["mysql", "sqlite:///"] },
  { entry: MANAGER, args: ["migrat"], words: ["migrat", "did you mean migrate?"] },
  { entry: MANAGER, args: ["token"], words: ["token"] },
  { entry: MANAGER, args: ["token", "create", "--name", "x", "--scopes", "root"], words: ["root"] },
  { entry: MANAGER, args: ["--config", "/none.yaml"], words: ["/none.yaml", "no such file"] },
  { entry: MANAGER, args: [], env: { MANAGER_CONFIG: "/none.yaml" }, words: ["/none.yaml"] },
  { entry: PEER, args: ["--workhom", "/x"], words: ["--workhom", "did you mean --workhome?"] },
  { entry: PEER, args: ["now"], words: ["now"] },
  { entry: PEER, args: ["--daemon-sock"], words: ["--daemon-sock", "needs a value"] },
  { entry: PEER, args: ["--limit", "fast"], words: ["fast"] },
  { entry: PEER, args: ["--config", "/none.yaml"], words: ["/none.yaml", "no such file"] },
  { entry: PEER, args: [], env: { CLIENT_CONFIG: "/none.yaml" }, words: ["/none.yaml"] },
  { entry: CLIENT, args: [URL, "--ratelmit", "5"], words: ["--ratelmit", "did you mean --ratelimit?"] },
  { entry: CLIENT, args: [URL], env: { CLIENT_CONFIG: "/none.yaml" }, words: ["/none.yaml"] },
];

const CONFIGS: Row[] = [
  { entry: MANAGER, args: [], config: "jobs: {}", words: ["jobs", 'did you mean "job"?'] },
  { entry: MANAGER, args: [], config: "job: { retrys: 1 }", words: ["job.retrys", 'did you mean "retries"?'] },
  { entry: MANAGER, args: [], config: "job: { retries: many }", words: ["job.retries", "many", "number"] },
  { entry: MANAGER, args: [], config: "job: { retries: 101 }", words: ["job.retries", "101"] },
  { entry: MANAGER, args: [], config: "job: { timeout: soon }", words: ["job.timeout", "soon", "30s"] },
  { entry: MANAGER, args: [], config: "server: 8080", words: ["server", "8080", "section"] },
  { entry: MANAGER, args: [], config: "server: { listen: example.com:80 }", words: ["server.listen", "HOST:PORT"] },
  { entry: MANAGER, args: [], config: "server: { tls: { cert: /x.pem } }", words: ["server.tls", "both cert and key"] },
  { entry: MANAGER, args: [], config: "- a\n- b", words: ["manager.yaml"] },
  { entry: MANAGER, args: [], config: "job: {", words: ["manager.yaml"] },
  { entry: MANAGER, args: [], config: "job: {}\njob: {}", words: ["manager.yaml"] },
  { entry: PEER, args: [], config: "uplaod: {}", words: ["uplaod", 'did you mean "upload"?'] },
  {
    entry: PEER,
    args: [],
    config: "upload: { tcpListen: { prot: 1 } }",
    words: ["upload.tcpListen.prot", 'did you mean "port"?'],
  },
  {
    entry: PEER,
    args: [],
    config: "upload: { tcpListen: { port: 70000 } }",
    words: ["upload.tcpListen.port", "70000"],
  },
  { entry: PEER, args: [], config: "upload: { rateLimit: quick }", words: ["upload.rateLimit", "quick"] },
  { entry: PEER, args: [], config: "gcInterval: often", words: ["gcInterval", "often"] },
  {
    entry: PEER,
    args: [],
    config: "scheduler: { manager: { addr: 'manager 8080' } }",
    words: ["scheduler.manager.addr", "manager 8080"],
  },
  { entry: PEER, args: [], config: "a: &a [*a]", words: ["client.yaml"] },
  { entry: PEER, args: [], config: "\u0000", words: ["client.yaml"] },
  { entry: CLIENT, args: [URL], config: "proxi: {}", words: ["proxi"] },
  { entry: CLIENT, args: ["daemon"], config: "storag: {}", words: ["storag", 'did you mean "storage"?'] },
];

Deno.test("wrong flags and wrong configuration are exit code 2, one line, and nothing is left behind", async (test) => {
  const folder = await Deno.makeTempDir({ prefix: "lacewing-test-" });
  for (const [index, { entry, args, config, env = {}, words }] of [...FLAGS, ...CONFIGS].entries()) {
    const claim = `${entry} ${args.join(" ")} ${JSON.stringify(config ?? env)}`;
    await test.step(claim, async () => {
      const cwd = `${folder}/${index}`;
      await Deno.mkdir(`${cwd}/home`, { recursive: true });
      const path = `${folder}/${index}-${entry === MANAGER ? "manager" : "client"}.yaml`;
      const file = config === undefined ? [] : ["--config", path];
      if (config !== undefined) await Deno.writeTextFile(path, config);
      // HOME stays: Deno keeps its packages there.
      const home = { XDG_STATE_HOME: `${cwd}/home`, XDG_RUNTIME_DIR: `${cwd}/home` };
      const places = entry === MANAGER ? [] : ["--daemon-sock", `${cwd}/s`];
      const own = args.includes("--daemon-sock") ? [] : places;
      const { code, stdout, stderr } = await runToEnd([
        ...denoRun(entry),
        ...[...args, ...file, ...own, ...(entry === CLIENT ? [] : ["--workhome", `${cwd}/home`])],
      ], { cwd, env: { ...home, ...env } });
      assertEquals([code, stdout], [2, ""], `${code} ${stdout}${stderr}`);
      // The client tries for a daemon first, and says so in a line of its own.
      const lines = entry === CLIENT ? stderr.replace(/^lacewing: no daemon [^\n]+\n/, "") : stderr;
      assert(/^lacewing(-\w+)?: [\x20-\x7e]+\n$/.test(lines), JSON.stringify(stderr));
      for (const word of words) assertStringIncludes(stderr, word);
      // What contradicts itself may come from a flag as well.
      if (config !== undefined && !config.includes("tls")) assertStringIncludes(stderr, path);
      const left = [...Deno.readDirSync(cwd), ...Deno.readDirSync(`${cwd}/home`)].map(({ name }) => name);
      assertEquals(left, ["home"], "something was left behind");
    });
  }
  await Deno.remove(folder, { recursive: true });
});
