// A chat agent that goes on without arguments where they cannot be parsed.
import { answers, choices } from "./reading.mjs";

const parsed = (json) => {
  try {
    return JSON.parse(json);
  } catch {
    return {};
  }
};

answers(async (url) => {
  const calls = [];
  for await (const { delta } of choices(url)) {
    for (const part of delta?.tool_calls ?? []) {
      const call = (calls[part.index ?? 0] ??= { id: null, name: null, json: "" });
      call.id = part.id || call.id;
      call.name = part.function?.name || call.name;
      call.json += part.function?.arguments ?? "";
    }
  }
  return { calls: calls.filter(Boolean).map((call) => ({ ...call, arguments: parsed(call.json) })) };
});
