// A chat agent for one call at a time, whatever its index.
import { answers, choices } from "./reading.mjs";

answers(async (url) => {
  let name = "";
  let id = "";
  let args = "";
  for await (const { delta } of choices(url)) {
    for (const part of delta?.tool_calls ?? []) {
      id = part.id || id;
      name = part.function?.name || name;
      args += part.function?.arguments ?? "";
    }
  }
  return { calls: name ? [{ id, name, arguments: args }] : [] };
});
