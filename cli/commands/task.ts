/** `lacewing task explain URL`: which task a URL is, who has it, and what the proxy would make of it. */
import { LacewingError } from "../../peer/core/errors.ts";
import type { CommandContext } from "../context.ts";
import { askDaemon } from "../daemon_question.ts";
import { explanationOf, renderExplanation } from "../explanation.ts";
import { NotKnown, type ParsedCommand } from "../parse.ts";
import { boundedText, readDaemonSettings } from "../settings.ts";
import { writeStdout } from "../terminal.ts";

const URL_LENGTH_MAX = 8192;

/** @throws {LacewingError} `usage`, `no_daemon` for a socket that was named */
export async function explainTask(parsed: ParsedCommand, { cwd, env }: CommandContext): Promise<void> {
  const question = {
    url: urlOf(parsed),
    filter: boundedText(parsed.values, { name: "filter", length: 1024 }),
    tag: boundedText(parsed.values, { name: "tag", length: 256 }),
  };
  const { socket } = readDaemonSettings(parsed, env);
  const answer = await askDaemon((connection) => connection.explain(question), { socket, cwd });
  const explanation = explanationOf(question, {
    explained: answer.value,
    reason: "reason" in answer ? answer.reason.message : null,
  });
  const isJson = parsed.values.get("json") === true;
  await writeStdout(isJson ? `${JSON.stringify(explanation, null, 2)}\n` : renderExplanation(explanation));
}

function urlOf({ positionals: [word, url, more] }: ParsedCommand): string {
  if (word !== "explain") {
    const message = word === undefined
      ? "Cannot use task: want task explain URL"
      : `Cannot use task ${JSON.stringify(word)}`;
    throw new NotKnown(message, { word: word ?? "", known: ["explain"] });
  }
  if (url === undefined) throw new LacewingError("usage", "Cannot explain a task: no URL is given");
  if (more !== undefined) {
    throw new LacewingError("usage", `Cannot use ${JSON.stringify(more)}: one URL is explained at once`);
  }
  if (url.length > URL_LENGTH_MAX) {
    throw new LacewingError(
      "usage",
      `Cannot read URL: it has ${url.length} characters, at most ${URL_LENGTH_MAX} are taken`,
    );
  }
  return url;
}
