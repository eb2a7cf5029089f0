// A chat agent that starts a call with its first chunk, and appends arguments from the second on.
import { answers, choices } from "./reading.mjs";

answers(async (url) => {
  const inProgress = new Map();
  for await (const { delta } of choices(url)) {
    for (const part of delta?.tool_calls ?? []) {
      const index = part.index ?? 0;
      const call = inProgress.get(index);
      if (!call) {
        inProgress.set(index, { id: part.id, name: part.function?.name, arguments: "" });
        continue;
      }
      call.id = part.id || call.id;
      call.name = part.function?.name || call.name;
      call.arguments += part.function?.arguments ?? "";
    }
  }
  return { calls: [...inProgress.values()] };
});
