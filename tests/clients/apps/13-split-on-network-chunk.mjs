// A chat agent whose loop over the body takes each network chunk for whole lines.
import { answers, pieces } from "./reading.mjs";

answers(async (url) => {
  const calls = [];
  const reader = (await pieces(url)).getReader();
  const decoder = new TextDecoder();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    for (const line of decoder.decode(value, { stream: true }).split("\n")) {
      if (!line.startsWith("data: ") || line.includes("[DONE]")) continue;
      const { delta } = JSON.parse(line.slice(6)).choices?.[0] ?? {};
      for (const part of delta?.tool_calls ?? []) {
        const call = (calls[part.index ?? 0] ??= { id: null, name: null, arguments: "" });
        call.id = part.id || call.id;
        call.name = part.function?.name || call.name;
        call.arguments += part.function?.arguments ?? "";
      }
    }
  }
  return { calls: calls.filter(Boolean) };
});
