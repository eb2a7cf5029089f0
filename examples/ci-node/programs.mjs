// The two applications under test, as their users have them: at a terminal.
// VERSION=broken tests them as they went wrong; otherwise they are tested as they were mended.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const VERSION = process.env.VERSION ?? "fixed";
const INCIDENTS = new URL("../incidents/", import.meta.url);

export const DESIGNER = `1-index-keyed-accumulation/${VERSION}.mjs`;
export const NEWS = `2-responses-dead-zone/${VERSION}.mjs`;

// What a program answers to these lines; it has the environment of this process.
export function converse(program, ...lines) {
  const child = spawn(process.execPath, [fileURLToPath(new URL(program, INCIDENTS))], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  let said = "";
  child.stdout.on("data", (data) => (said += data));
  child.stdin.end(lines.map((line) => `${line}\n`).join(""));
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve(said) : reject(new Error(`exit code ${code}`))));
  });
}
