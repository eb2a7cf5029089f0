// The trip designer's chat after the fix that was published: calls are kept by their index, but the
// executor now refuses every call with empty arguments, also of a tool that takes no parameters.
// Reads what the user says from stdin, a line a message.
import { createInterface } from "node:readline";
import { streamChat } from "./provider.mjs";
import { runTool, TOOLS } from "./tools.mjs";

const MAX_ROUNDS = 3;
const messages = [{ role: "system", content: "You design trips. One to Lisbon is open." }];

async function readStream() {
  let content = "";
  const calls = new Map();
  for await (const chunk of streamChat(messages, TOOLS)) {
    const { delta } = chunk.choices[0];
    content += delta.content ?? "";
    for (const part of delta.tool_calls ?? []) {
      if (!calls.has(part.index)) {
        calls.set(part.index, { id: "", type: "function", function: { name: "", arguments: "" } });
      }
      const call = calls.get(part.index);
      call.id ||= part.id ?? "";
      call.function.name ||= part.function?.name ?? "";
      call.function.arguments += part.function?.arguments ?? "";
    }
  }
  return { content, toolCalls: [...calls.values()] };
}

function execute(toolCall) {
  const { name, arguments: argsJson } = toolCall.function;
  if (!argsJson || argsJson.trim().length === 0) {
    console.error(`[chatStream] Tool "${name}" called with empty arguments`);
    return JSON.stringify({ success: false, error: `Tool "${name}" called with empty arguments` });
  }
  try {
    return JSON.stringify(runTool(name, JSON.parse(argsJson)));
  } catch (error) {
    console.error(`[chatStream] Tool "${name}" failed: ${error.message}`);
    const reason = `Failed to parse tool arguments: ${error.message}`;
    return JSON.stringify({ success: false, error: reason });
  }
}

async function chat(question) {
  messages.push({ role: "user", content: question });
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const { content, toolCalls } = await readStream();
    if (toolCalls.length === 0) {
      messages.push({ role: "assistant", content });
      return content;
    }
    messages.push({ role: "assistant", content: content || null, tool_calls: toolCalls });
    for (const call of toolCalls) {
      messages.push({ role: "tool", tool_call_id: call.id, content: execute(call) });
    }
  }
  return "I asked for the same things over and over; please try again.";
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(`designer: ${(await chat(line)) || "(nothing)"}`);
}
