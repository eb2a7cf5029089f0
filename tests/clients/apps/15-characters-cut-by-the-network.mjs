// A chat agent that turns each network chunk into text by itself; lines it puts together well.
import { answers, pieces } from "./reading.mjs";

answers(async (url) => {
  const calls = [];
  let buffer = "";
  for await (const bytes of await pieces(url)) {
    buffer += Buffer.from(bytes).toString("utf8");
    const lines = buffer.split("\n");
    buffer = lines.pop();
    for (const line of lines.filter((each) => each.startsWith("data: {"))) {
      for (const part of JSON.parse(line.slice(6)).choices?.[0]?.delta?.tool_calls ?? []) {
        const call = (calls[part.index ?? 0] ??= { id: null, name: null, arguments: "" });
        call.id = part.id || call.id;
        call.name = part.function?.name || call.name;
        call.arguments += part.function?.arguments ?? "";
      }
    }
  }
  return { calls: calls.filter(Boolean) };
});
