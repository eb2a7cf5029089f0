// A chat agent that takes every chunk for a message of its own and runs what is in it.
import { answers, choices } from "./reading.mjs";

answers(async (url) => {
  const calls = [];
  for await (const { delta } of choices(url)) {
    if (!delta?.tool_calls) continue;
    calls.push(
      ...delta.tool_calls.map((call) => ({
        id: call.id,
        name: call.function?.name,
        arguments: call.function?.arguments ?? "",
      })),
    );
  }
  return { calls };
});
