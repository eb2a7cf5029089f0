// An agent for the Responses API that takes each call as it is announced.
import { answers, events } from "./reading.mjs";

answers(async (url) => {
  const calls = [];
  for await (const event of events(url)) {
    if (event.type === "response.output_item.added" && event.item.type === "function_call") {
      const { call_id: id, name, arguments: args } = event.item;
      calls.push({ id, name, arguments: args });
    }
  }
  return { calls };
});
