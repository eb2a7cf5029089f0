// After the fix that was published: tool calls are taken whole, but from response.output_item.added,
// where they have only begun: the arguments are still "".
import { converse } from "./chat.mjs";
import { streamResponse } from "./provider.mjs";

async function readStream(input) {
  let text = "";
  const outputItems = [];
  for await (const event of streamResponse(input)) {
    if (event.type === "response.output_item.added") outputItems.push(event.item);
    if (event.type === "response.output_text.delta") text += event.delta;
  }
  if (text) console.log(`assistant: ${text}`);
  const toolCalls = outputItems
    .filter((item) => item.type === "function_tool_call" || item.type === "function_call")
    .map((item) => ({ id: item.call_id || item.id, name: item.name, arguments: item.arguments }))
    .filter((call) => call.id && call.name);
  return { text, toolCalls };
}

await converse(readStream);
