// A chat agent that runs its tools when, and only when, the model says that it stops for them.
import { answers, choices } from "./reading.mjs";

answers(async (url) => {
  const pending = new Map();
  const calls = [];
  for await (const { delta, finish_reason } of choices(url)) {
    for (const part of delta?.tool_calls ?? []) {
      const at = part.index ?? 0;
      const call = pending.get(at) ?? { arguments: "" };
      call.id = part.id || call.id;
      call.name = part.function?.name || call.name;
      call.arguments += part.function?.arguments ?? "";
      pending.set(at, call);
    }
    if (finish_reason === "tool_calls") {
      calls.push(...pending.values());
      pending.clear();
    }
  }
  return { calls };
});
