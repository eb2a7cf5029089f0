// Arguments go through a zod schema: defaults filled in, unknown keys stripped, "5" made 5.
import { z } from "zod";

const Input = z.object({
  query: z.string().trim(),
  limit: z.coerce.number().default(10),
  safe: z.boolean().default(true),
});
const tools = [
  { type: "function", function: { name: "search", parameters: z.toJSONSchema(Input, { io: "input" }) } },
];
const base = process.env.OPENAI_BASE_URL;

async function ask(messages) {
  const response = await fetch(`${base}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer sk-none" },
    body: JSON.stringify({ model: "gpt-4.1-mini", messages, tools }),
  });
  return (await response.json()).choices[0].message;
}

const messages = [{ role: "user", content: "Find pictures of cats" }];
const message = await ask(messages);
for (const call of message.tool_calls) {
  const input = Input.parse(JSON.parse(call.function.arguments));
  call.function.arguments = JSON.stringify(input);
}
messages.push(message);
for (const call of message.tool_calls) {
  messages.push({ role: "tool", tool_call_id: call.id, content: "5 pictures" });
}
console.log((await ask(messages)).content);
