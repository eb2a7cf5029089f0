// A chat agent without any of the mistakes: calls by index, ids and names kept, arguments appended.
import { answers, choices } from "./reading.mjs";

answers(async (url) => {
  const calls = [];
  for await (const { delta } of choices(url)) {
    for (const part of delta?.tool_calls ?? []) {
      const call = (calls[part.index ?? 0] ??= { id: null, name: null, arguments: "" });
      call.id = part.id || call.id;
      call.name = part.function?.name || call.name;
      call.arguments += part.function?.arguments ?? "";
    }
  }
  return { calls: calls.filter(Boolean) };
});
