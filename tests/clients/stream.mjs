// The official openai SDK for Node, as an application uses it; prints what it understood.
// argv: base URL, request as JSON.
import { createHash } from "node:crypto";
import OpenAI from "openai";

const [baseURL, request] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: "sk-fake-000", maxRetries: 0 });
const body = JSON.parse(request);

const raw = await client.chat.completions.create(body).asResponse();
const bytes = Buffer.from(await raw.arrayBuffer());

let reply = null;
let error = null;
try {
  reply = await client.chat.completions.stream(body).finalChatCompletion();
} catch (problem) {
  error = String(problem.message ?? problem);
}
const sha256 = createHash("sha256").update(bytes).digest("hex");
console.log(JSON.stringify({ sha256, reply, error }));
