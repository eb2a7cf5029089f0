// A chat agent that leaves the stream at the first finish reason that is there at all.
import { answers, choices } from "./reading.mjs";

answers(async (url) => {
  const calls = {};
  for await (const { delta, finish_reason } of choices(url)) {
    for (const part of delta?.tool_calls ?? []) {
      const call = (calls[part.index ?? 0] ??= { id: null, name: null, arguments: "" });
      call.id = part.id || call.id;
      call.name = part.function?.name || call.name;
      call.arguments += part.function?.arguments ?? "";
    }
    if (finish_reason !== null && finish_reason !== undefined) break;
  }
  return { calls: Object.values(calls) };
});
