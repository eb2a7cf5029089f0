#!/usr/bin/env node
// Prints what is on tapes, as JSON: a line for each. Exit code 1 if one of them, or a line, is refused,
// 2 if there is no such file.
//
//   node read.mjs TAPE...

import { readFileSync } from "node:fs";
import { print } from "./json.mjs";
import { readTape } from "./tape.mjs";

try {
  for (const name of process.argv.slice(2)) {
    const result = readTape(readFileSync(name));
    if (result.refused) process.exitCode = 1;
    process.stdout.write(`${print(result)}\n`);
  }
} catch (error) {
  if (error.syscall === undefined) throw error; // a mistake in this program
  console.error(error.message);
  process.exitCode = 2;
}
