// An agent for the Responses API that waits for the whole response and runs the calls in it.
import { answers, events } from "./reading.mjs";

answers(async (url) => {
  let response = { output: [] };
  for await (const event of events(url)) {
    if (event.type === "response.completed") response = event.response;
  }
  const calls = response.output
    .filter((item) => item.type === "function_call")
    .map((item) => ({ id: item.call_id, name: item.name, arguments: item.arguments }));
  return { calls };
});
