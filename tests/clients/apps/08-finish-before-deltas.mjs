// A chat agent that stops at the chunk with a finish reason, before it looks at what else it has.
import { answers, choices } from "./reading.mjs";

answers(async (url) => {
  const calls = new Map();
  for await (const choice of choices(url)) {
    if (choice.finish_reason) break;
    for (const part of choice.delta?.tool_calls ?? []) {
      const key = part.index ?? 0;
      if (!calls.has(key)) calls.set(key, { id: part.id, name: "", arguments: "" });
      const call = calls.get(key);
      if (part.id) call.id = part.id;
      if (part.function?.name) call.name = part.function.name;
      call.arguments += part.function?.arguments ?? "";
    }
  }
  return { calls: [...calls.values()] };
});
