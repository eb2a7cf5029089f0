// The history lives in localStorage as objects: JSON.parse and JSON.stringify write 1.0 as 1,
// 1e3 as 1000, and keys that look like numbers first.
const base = process.env.OPENAI_BASE_URL;

async function ask(messages, tools) {
  const response = await fetch(`${base}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "gpt-4.1-mini", messages, tools, stream: true }),
  });
  const message = { role: "assistant", content: "" };
  const calls = [];
  let rest = "";
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data: {")) continue;
      const delta = JSON.parse(line.slice(6)).choices[0].delta;
      message.content += delta.content ?? "";
      for (const part of delta.tool_calls ?? []) {
        calls[part.index] ??= { id: part.id, type: "function", function: { name: part.function.name, arguments: "" } };
        calls[part.index].function.arguments += part.function.arguments ?? "";
      }
    }
  }
  if (calls.length) message.tool_calls = calls;
  return message;
}

const parameters = { type: "object", properties: { values: { type: "object" }, scale: { type: "number" } } };
const tools = [{ type: "function", function: { name: "plot", parameters } }];
const stored = [{ role: "user", content: "Plot it" }];
const message = await ask(stored, tools);
stored.push({
  ...message,
  tool_calls: message.tool_calls.map((call) => ({
    ...call,
    function: { ...call.function, arguments: JSON.stringify(JSON.parse(call.function.arguments)) },
  })),
});
stored.push({ role: "tool", tool_call_id: message.tool_calls[0].id, content: "plotted" });
console.log((await ask(stored, tools)).content);
