// A chat agent that remembers the one call it is in the middle of, and runs it when the turn ends.
import { answers, choices } from "./reading.mjs";

answers(async (url) => {
  let currentToolCall = null;
  const calls = [];
  for await (const { delta, finish_reason } of choices(url)) {
    for (const part of delta?.tool_calls ?? []) {
      if (!currentToolCall || part.id) {
        currentToolCall = { id: part.id, name: part.function?.name, arguments: part.function?.arguments ?? "" };
      } else {
        currentToolCall.arguments += part.function?.arguments ?? "";
      }
    }
    if (finish_reason === "tool_calls" && currentToolCall) {
      calls.push(currentToolCall);
      currentToolCall = null;
    }
  }
  return { calls };
});
