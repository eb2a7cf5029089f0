// The trip designer's chat as it went wrong. Three mistakes in one file:
//  - one variable, currentToolCall, for whatever the stream brings: a second call takes the place of
//    the first one, and gets the fragments of both;
//  - the executor parses without looking: the "" of a tool that takes no parameters is "Unexpected
//    end of JSON input";
//  - the second stream is read for text only, although the model may well call tools again.
// Reads what the user says from stdin, a line a message.
import { createInterface } from "node:readline";
import { streamChat } from "./provider.mjs";
import { runTool, TOOLS } from "./tools.mjs";

const messages = [{ role: "system", content: "You design trips. One to Lisbon is open." }];

async function firstStream() {
  let content = "";
  let currentToolCall = null;
  let toolCalls = [];
  for await (const chunk of streamChat(messages, TOOLS)) {
    const { delta, finish_reason: finishReason } = chunk.choices[0];
    content += delta.content ?? "";
    for (const part of delta.tool_calls ?? []) {
      if (!currentToolCall || part.id) {
        const { name, arguments: args } = part.function;
        currentToolCall = { id: part.id, type: "function", function: { name, arguments: args ?? "" } };
      } else {
        currentToolCall.function.arguments += part.function.arguments ?? "";
      }
    }
    if (finishReason === "tool_calls" && currentToolCall) toolCalls = [currentToolCall];
  }
  return { content, toolCalls };
}

async function secondStream() {
  let finalContent = "";
  let chunks = 0;
  for await (const chunk of streamChat(messages, TOOLS)) {
    chunks += 1;
    finalContent += chunk.choices[0].delta.content ?? "";
  }
  console.error(
    `[chatStream] Second stream ended, received ${chunks} chunks,` +
      ` finalContent length: ${finalContent.length}`,
  );
  return finalContent;
}

function execute(toolCall) {
  const { name, arguments: argsJson } = toolCall.function;
  try {
    const args = JSON.parse(argsJson);
    return JSON.stringify(runTool(name, args));
  } catch (error) {
    console.error(`[chatStream] Tool "${name}" failed: ${error.message}`);
    console.error(`[chatStream] Tool arguments: ${argsJson}`);
    return JSON.stringify({ success: false, error: error.message });
  }
}

async function chat(question) {
  messages.push({ role: "user", content: question });
  const { content, toolCalls } = await firstStream();
  if (toolCalls.length === 0) {
    messages.push({ role: "assistant", content });
    return content;
  }
  messages.push({ role: "assistant", content: content || null, tool_calls: toolCalls });
  for (const call of toolCalls) {
    messages.push({ role: "tool", tool_call_id: call.id, content: execute(call) });
  }
  const finalContent = await secondStream();
  messages.push({ role: "assistant", content: finalContent });
  return finalContent;
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(`designer: ${(await chat(line)) || "(nothing)"}`);
}
