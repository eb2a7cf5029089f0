// A chat agent that is in a hurry: a call runs as soon as its arguments are JSON.
import { answers, choices } from "./reading.mjs";

answers(async (url) => {
  const pending = {};
  const calls = [];
  for await (const { delta } of choices(url)) {
    for (const part of delta?.tool_calls ?? []) {
      const call = (pending[part.index ?? 0] ??= { id: null, name: null, arguments: "", started: false });
      if (call.started) continue;
      call.id = part.id || call.id;
      call.name = part.function?.name || call.name;
      call.arguments += part.function?.arguments ?? "";
      try {
        JSON.parse(call.arguments);
      } catch {
        continue;
      }
      call.started = true;
      calls.push(call);
    }
  }
  return { calls };
});
