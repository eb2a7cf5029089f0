// An agent for Anthropic's API that parses each piece of input and keeps what is JSON by itself.
import { answers, events } from "./reading.mjs";

answers(async (url) => {
  const calls = {};
  for await (const event of events(url)) {
    if (event.type === "content_block_start" && event.content_block.type === "tool_use") {
      calls[event.index] = { id: event.content_block.id, name: event.content_block.name, arguments: {} };
    }
    if (event.delta?.type === "input_json_delta") {
      try {
        calls[event.index].arguments = { ...calls[event.index].arguments, ...JSON.parse(event.delta.partial_json) };
      } catch (problem) {
        if (!(problem instanceof SyntaxError)) throw problem;
      }
    }
  }
  return { calls: Object.values(calls) };
});
