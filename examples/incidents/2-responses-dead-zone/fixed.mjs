// Mended: a call is taken from response.output_item.done, where it is whole, and a stream without
// response.completed is an error.
import { converse } from "./chat.mjs";
import { streamResponse } from "./provider.mjs";

async function readStream(input) {
  let text = "";
  let completed = false;
  const toolCalls = [];
  for await (const event of streamResponse(input)) {
    if (event.type === "response.output_text.delta") text += event.delta;
    if (event.type === "response.output_item.done" && event.item.type === "function_call") {
      const { call_id: id, name, arguments: args } = event.item;
      toolCalls.push({ id, name, arguments: args });
    }
    if (event.type === "response.completed") completed = true;
  }
  if (text) console.log(`assistant: ${text}`);
  if (!completed) throw new Error("the stream ended without response.completed");
  return { text, toolCalls };
}

await converse(readStream);
