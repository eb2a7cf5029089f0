// One streamed request of Chat Completions; yields the chunks as parsed JSON.
const BASE = process.env.OPENAI_BASE_URL ?? "https://api.openai.com/v1";
const KEY = process.env.OPENAI_API_KEY ?? "no-key";

export async function* streamChat(messages, tools) {
  const response = await fetch(`${BASE}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${KEY}` },
    body: JSON.stringify({ model: "trip-model", stream: true, messages, tools }),
  });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  const decoder = new TextDecoder();
  let buffer = "";
  for await (const bytes of response.body) {
    buffer += decoder.decode(bytes, { stream: true });
    const lines = buffer.split("\n");
    buffer = lines.pop();
    for (const line of lines) {
      if (line.startsWith("data: ") && line !== "data: [DONE]") yield JSON.parse(line.slice(6));
    }
  }
}
