// A chat agent that looks at the first entry of each list of deltas, as there is always one.
import { answers, choices } from "./reading.mjs";

answers(async (url) => {
  const calls = {};
  for await (const { delta } of choices(url)) {
    const part = delta?.tool_calls?.[0];
    if (!part) continue;
    const call = (calls[part.index ?? 0] ??= { id: "", name: "", arguments: "" });
    if (part.id) call.id = part.id;
    if (part.function?.name) call.name = part.function.name;
    call.arguments += part.function?.arguments ?? "";
  }
  return { calls: Object.values(calls) };
});
