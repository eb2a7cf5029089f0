// A tape as the provider, for the length of a test: `deltatape replay` in a process of its own.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

// Plays a tape while `use` runs. Fails as well when something was asked for that is not on the
// tape, and when an exchange on it was not asked for.
export async function withTape(tape, use) {
  const player = spawn("deltatape", ["replay", "--listen", "127.0.0.1:0", "--speed", "instant", tape], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const told = [];
  const ended = once(player, "exit");
  const url = await new Promise((resolve, reject) => {
    player.on("error", reject);
    ended.then(() => reject(new Error(told.join("\n"))));
    createInterface({ input: player.stderr }).on("line", (line) => {
      told.push(line);
      const found = line.match(/ plays .* at (http:\S+)/);
      if (found) resolve(found[1]);
    });
  });
  const before = process.env.OPENAI_BASE_URL;
  process.env.OPENAI_BASE_URL = `${url}/v1`;
  try {
    await use();
  } finally {
    if (before === undefined) delete process.env.OPENAI_BASE_URL;
    else process.env.OPENAI_BASE_URL = before;
    player.kill("SIGINT");
  }
  const [code] = await ended;
  if (code !== 0) throw new Error(told.join("\n"));
}
