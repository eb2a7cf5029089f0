// A chat agent that parses each piece of arguments and collects the keys of those that are JSON.
import { answers, choices } from "./reading.mjs";

answers(async (url) => {
  const calls = [];
  for await (const { delta } of choices(url)) {
    for (const part of delta?.tool_calls ?? []) {
      const call = (calls[part.index ?? 0] ??= { arguments: {} });
      if (part.id) call.id = part.id;
      if (part.function?.name) call.name = part.function.name;
      try {
        Object.assign(call.arguments, JSON.parse(part.function.arguments));
      } catch {
        // not JSON yet
      }
    }
  }
  return { calls: calls.filter(Boolean) };
});
