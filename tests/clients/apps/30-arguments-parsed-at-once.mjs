// A chat agent with one call in its hands, whose executor parses the arguments that it gets.
import { answers, choices } from "./reading.mjs";

answers(async (url) => {
  let current = null;
  const calls = [];
  const execute = ({ id, name, json }) => calls.push({ id, name, arguments: JSON.parse(json) });
  for await (const { delta, finish_reason } of choices(url)) {
    for (const part of delta?.tool_calls ?? []) {
      if (part.id) {
        if (current) execute(current);
        current = { id: part.id, name: part.function?.name, json: part.function?.arguments ?? "" };
      } else if (current) {
        current.json += part.function?.arguments ?? "";
      }
    }
    if (finish_reason && current) {
      execute(current);
      current = null;
    }
  }
  return { calls };
});
