// An agent for Anthropic's API that takes a call's input from the event that starts its block.
import { answers, events } from "./reading.mjs";

answers(async (url) => {
  const calls = [];
  for await (const event of events(url)) {
    if (event.type !== "content_block_start" || event.content_block.type !== "tool_use") continue;
    const { id, name, input } = event.content_block;
    calls.push({ id, name, arguments: input });
  }
  return { calls };
});
