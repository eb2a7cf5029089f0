// A chat agent with a deep merge of deltas: objects by key, lists by index, strings end to end.
import { answers, choices } from "./reading.mjs";

function merge(into, from) {
  for (const [key, value] of Object.entries(from ?? {})) {
    if (value === null || key === "index" || key === "type") continue;
    if (key === "name") into.name = value || into.name;
    else if (typeof value === "string") into[key] = (into[key] ?? "") + value;
    else into[key] = merge(into[key] ?? {}, value);
  }
  return into;
}

answers(async (url) => {
  const merged = {};
  for await (const { delta } of choices(url)) {
    for (const part of delta?.tool_calls ?? []) {
      const slot = part.index ?? 0;
      merged[slot] = merge(merged[slot] ?? {}, part);
    }
  }
  const calls = Object.values(merged).map((call) => ({ id: call.id, ...call.function }));
  return { calls: calls.map((call) => ({ ...call, arguments: call.arguments ?? "" })) };
});
