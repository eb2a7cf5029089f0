// A chat agent that throws away calls without an id or a name, as malformed.
import { answers, choices } from "./reading.mjs";

answers(async (url) => {
  const calls = [];
  for await (const { delta } of choices(url)) {
    for (const part of delta?.tool_calls ?? []) {
      const call = (calls[part.index ?? 0] ??= { id: "", name: "", arguments: "" });
      call.id = part.id || call.id;
      call.name = part.function?.name || call.name;
      call.arguments += part.function?.arguments ?? "";
    }
  }
  return { calls: calls.filter((call) => call.id && call.name) };
});
