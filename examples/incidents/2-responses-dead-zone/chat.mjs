// The conversation: what the user says, line by line from stdin, the answers on stdout. How a stream
// is read, and so which tool calls there are, comes from broken.mjs, published-fix.mjs or fixed.mjs.
import { createInterface } from "node:readline";
import { searchWeb } from "./provider.mjs";

const MAX_ROUNDS = 3;

function execute(call) {
  try {
    return JSON.stringify(searchWeb(call.arguments ? JSON.parse(call.arguments) : {}));
  } catch (error) {
    console.error(`[runModelStream] ${call.name} failed: ${error.message}`);
    return JSON.stringify({ error: error.message });
  }
}

async function answer(input, readStream) {
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const { text, toolCalls } = await readStream(input);
    if (text) input.push({ role: "assistant", content: text });
    if (toolCalls.length === 0) return;
    for (const call of toolCalls) {
      const { id, name, arguments: args } = call;
      input.push({ type: "function_call", call_id: id, name, arguments: args });
      input.push({ type: "function_call_output", call_id: id, output: execute(call) });
    }
  }
}

export async function converse(readStream) {
  const input = [];
  for await (const line of createInterface({ input: process.stdin })) {
    input.push({ role: "user", content: line });
    try {
      await answer(input, readStream);
    } catch (error) {
      console.error(`[runModelStream] ${error.message}`);
      console.log("assistant: The answer broke off, please ask again.");
    }
  }
}
