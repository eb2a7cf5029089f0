// A chat agent that notes the finish reason as it comes and decides at the end of the stream.
import { answers, choices } from "./reading.mjs";

answers(async (url) => {
  const calls = [];
  let finishReason = null;
  for await (const { delta, finish_reason } of choices(url)) {
    for (const part of delta?.tool_calls ?? []) {
      const call = (calls[part.index ?? 0] ??= { id: null, name: null, arguments: "" });
      call.id = part.id || call.id;
      call.name = part.function?.name || call.name;
      call.arguments += part.function?.arguments ?? "";
    }
    if (finish_reason) finishReason = finish_reason;
  }
  return { calls: finishReason === "tool_calls" ? calls.filter(Boolean) : [] };
});
