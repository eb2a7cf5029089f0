// `${result}` of an object is [object Object]; with --healthy it is JSON.
import OpenAI from "openai";

const healthy = process.argv.includes("--healthy");
const client = new OpenAI({ apiKey: "sk-none" });
const parameters = { type: "object", properties: { email: { type: "string" } }, required: ["email"] };
const tools = [{ type: "function", function: { name: "find_user", parameters } }];
const messages = [{ role: "user", content: "Who is kim@example.com?" }];
const findUser = async ({ email }) => ({ email, name: "Kim Lee", city: "Seoul" });

const ask = () => client.chat.completions.stream({ model: "gpt-4.1-mini", messages, tools }).finalMessage();
const message = await ask();
messages.push(message);
for (const call of message.tool_calls) {
  const result = await findUser(JSON.parse(call.function.arguments));
  const content = healthy ? JSON.stringify(result) : `${result}`;
  messages.push({ role: "tool", tool_call_id: call.id, content });
}
console.log((await ask()).content);
