// A chat agent that was written with a look at the first chunks of one stream.
import { answers, events } from "./reading.mjs";

answers(async (url) => {
  const calls = [];
  for await (const chunk of events(url)) {
    const delta = chunk.choices[0].delta;
    for (const part of delta.tool_calls ?? []) {
      const call = (calls[part.index ?? 0] ??= { id: null, name: null, arguments: "" });
      call.id = part.id || call.id;
      call.name = part.function?.name || call.name;
      call.arguments += part.function?.arguments ?? "";
    }
  }
  return { calls: calls.filter(Boolean) };
});
