/** A terminal of its own for one command, by tmux: what stands on it, and the keys that a user presses. */
import { runBytes } from "./child.ts";

const WAIT_MS = 20_000;

/** Whether this machine has a tmux. */
export async function hasTmux(): Promise<boolean> {
  return await runBytes("tmux", { args: ["-V"] }).then(({ code }) => code === 0, () => false);
}

export class Screen implements AsyncDisposable {
  readonly #folder = Deno.makeTempDirSync({ prefix: "lacewing-tmux-" });

  /** Opens a terminal with an empty shell in it. */
  static async open(size: { columns: number; rows: number }): Promise<Screen> {
    const screen = new Screen();
    const { columns, rows } = size;
    const shell = ["env", "PS1=$ ", "HISTFILE=", "bash", "--norc", "--noprofile"];
    await screen.#tmux("new-session", "-d", "-x", String(columns), "-y", String(rows), ...shell);
    await screen.until((text) => text.startsWith("$"));
    return screen;
  }

  /** Types a command and presses Enter. */
  async type(command: string): Promise<void> {
    await this.#tmux("send-keys", "-l", command);
    await this.press("Enter");
  }

  /** Presses a key by tmux's name, as `C-c`. */
  async press(key: string): Promise<void> {
    await this.#tmux("send-keys", key);
  }

  async resize({ columns, rows }: { columns: number; rows: number }): Promise<void> {
    await this.#tmux("resize-window", "-x", String(columns), "-y", String(rows));
  }

  /** What can be seen. */
  async text(): Promise<string> {
    return await this.#tmux("capture-pane", "-p");
  }

  /** What can be seen with the escape sequences that the terminal keeps, such as colours. */
  async raw(): Promise<string> {
    return await this.#tmux("capture-pane", "-p", "-e");
  }

  /** Column of the cursor, from 0, whether it can be seen, and the title that a program has set. */
  async state(): Promise<{ column: number; isVisible: boolean; title: string }> {
    const [column, flag, title] =
      (await this.#tmux("display-message", "-p", "#{cursor_x}|#{cursor_flag}|#{pane_title}"))
        .trim().split("|");
    return { column: Number(column), isVisible: flag === "1", title: title ?? "" };
  }

  /** The screen's text as soon as it is as wanted. */
  async until(isWanted: (text: string) => boolean): Promise<string> {
    const endMs = performance.now() + WAIT_MS;
    while (true) {
      const text = await this.text();
      if (isWanted(text)) return text;
      if (performance.now() > endMs) throw new Error(`the screen never became as wanted:\n${text}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tmux("kill-server").catch(() => {});
    await Deno.remove(this.#folder, { recursive: true });
  }

  async #tmux(...args: string[]): Promise<string> {
    const env = { TERM: "xterm-256color", LC_ALL: "C.UTF-8" };
    // A server of its own, with no configuration of the user's.
    const { code, stdout, stderr } = await runBytes("tmux", {
      args: ["-f", "/dev/null", "-S", `${this.#folder}/s`, "-u", ...args],
      env,
    });
    if (code !== 0) throw new Error(`tmux ${args[0]} failed: ${stderr}`);
    return new TextDecoder().decode(stdout);
  }
}
