// A chat agent that files what it gets under the call's id.
import { answers, choices } from "./reading.mjs";

answers(async (url) => {
  const byId = {};
  for await (const { delta } of choices(url)) {
    for (const part of delta?.tool_calls ?? []) {
      const call = (byId[part.id] ??= { id: part.id, name: null, arguments: "" });
      if (part.function?.name) call.name = part.function.name;
      if (part.function?.arguments) call.arguments += part.function.arguments;
    }
  }
  return { calls: Object.values(byId) };
});
