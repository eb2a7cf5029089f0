// As it went wrong: tool calls are put together from the argument deltas. These name the item they
// belong to and never the tool, so that every call has the name "", and the filter drops it.
import { converse } from "./chat.mjs";
import { streamResponse } from "./provider.mjs";

async function readStream(input) {
  let text = "";
  const outputItems = [];
  const currentToolCalls = [];
  for await (const event of streamResponse(input)) {
    if (event.type === "response.output_item.done") outputItems.push(event.item);
    if (event.type === "response.output_text.delta") text += event.delta;
    if (event.type === "response.function_call_arguments.delta") {
      const callId = event.call_id ?? event.item_id;
      let toolCall = currentToolCalls.find((each) => each.id === callId);
      if (!toolCall) {
        toolCall = { id: callId, name: "", arguments: "" };
        currentToolCalls.push(toolCall);
      }
      toolCall.arguments += event.delta;
    }
  }
  if (text) console.log(`assistant: ${text}`);
  console.error(`[runModelStream] ${outputItems.length} output items`);
  const toolCalls = currentToolCalls.filter((call) => {
    if (call.id && call.name) return true;
    console.error("Filtering out malformed tool call (missing id or name)", JSON.stringify(call));
    return false;
  });
  return { text, toolCalls };
}

await converse(readStream);
