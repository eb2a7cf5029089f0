// An agent for the Responses API that builds calls from deltas by their call_id, drops those without
// an id or a name, and looks at nothing else.
import { answers, events } from "./reading.mjs";

answers(async (url) => {
  const calls = [];
  for await (const event of events(url)) {
    if (event.type !== "response.function_call_arguments.delta") continue;
    let call = calls.find(({ id }) => id === event.call_id);
    if (!call) {
      call = { id: event.call_id, name: "", arguments: "" };
      calls.push(call);
    }
    call.arguments += event.delta;
  }
  return { calls: calls.filter((call) => call.id && call.name) };
});
