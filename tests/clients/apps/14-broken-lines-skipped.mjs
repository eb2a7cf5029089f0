// The same loop over network chunks, where lines that are no JSON are skipped without a word.
import { answers, pieces } from "./reading.mjs";

answers(async (url) => {
  const calls = [];
  const decoder = new TextDecoder();
  for await (const bytes of await pieces(url)) {
    for (const line of decoder.decode(bytes, { stream: true }).split("\n")) {
      if (!line.startsWith("data: ")) continue;
      let chunk;
      try {
        chunk = JSON.parse(line.slice("data: ".length));
      } catch {
        continue;
      }
      for (const part of chunk.choices?.[0]?.delta?.tool_calls ?? []) {
        const call = (calls[part.index ?? 0] ??= { id: null, name: null, arguments: "" });
        call.id = part.id || call.id;
        call.name = part.function?.name || call.name;
        call.arguments += part.function?.arguments ?? "";
      }
    }
  }
  return { calls: calls.filter(Boolean) };
});
