// A chat agent that adds up whatever is a string, the function's name included.
import { answers, choices } from "./reading.mjs";

answers(async (url) => {
  const calls = [];
  for await (const { delta } of choices(url)) {
    for (const { index = 0, id, function: fn = {} } of delta?.tool_calls ?? []) {
      calls[index] ??= { id: null, name: "", arguments: "" };
      calls[index].id ||= id;
      calls[index].name += fn?.name ?? "";
      calls[index].arguments += fn?.arguments ?? "";
    }
  }
  return { calls: calls.filter(Boolean) };
});
