// An agent for Anthropic's API that gives every delta to the block that was started last.
import { answers, events } from "./reading.mjs";

answers(async (url) => {
  const blocks = [];
  for await (const event of events(url)) {
    if (event.type === "content_block_start") blocks.push({ ...event.content_block, json: "" });
    const delta = event.type === "content_block_delta" ? event.delta : {};
    if (delta.type === "input_json_delta") blocks.at(-1).json += delta.partial_json;
  }
  const calls = blocks
    .filter((block) => block.type === "tool_use")
    .map(({ id, name, json }) => ({ id, name, arguments: json }));
  return { calls };
});
