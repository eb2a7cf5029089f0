// One streamed request of the Responses API; yields its events as parsed JSON.
const BASE = process.env.OPENAI_BASE_URL ?? "https://api.openai.com/v1";
const KEY = process.env.OPENAI_API_KEY ?? "no-key";

const WEB_SEARCH = {
  type: "function",
  name: "web_search",
  description: "Search the web.",
  parameters: {
    type: "object",
    properties: { query: { type: "string" } },
    required: ["query"],
    additionalProperties: false,
  },
  strict: true,
};

export async function* streamResponse(input) {
  const response = await fetch(`${BASE}/responses`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${KEY}` },
    body: JSON.stringify({
      model: "news-model",
      stream: true,
      store: false,
      input,
      tools: [WEB_SEARCH],
    }),
  });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  const decoder = new TextDecoder();
  let buffer = "";
  for await (const bytes of response.body) {
    buffer += decoder.decode(bytes, { stream: true });
    const lines = buffer.split("\n");
    buffer = lines.pop();
    for (const line of lines) if (line.startsWith("data: ")) yield JSON.parse(line.slice(6));
  }
}

export function searchWeb({ query }) {
  if (!query) throw new Error("web_search needs a query");
  return { query, results: [{ title: "Ferry strike called off", published: "today" }] };
}
