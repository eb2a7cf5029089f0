// The official SDKs for Node, as an application uses them: one streamed turn with tools.
// argv: the dialect, the request as JSON. Each line of stdin is a base URL; for each, one line of
// stdout: a JSON list of everything that the SDK gave to the application, and its final message.
import { createInterface } from "node:readline";

const KEY = "sk-fake-000000";

async function openaiClient(url) {
  const { default: OpenAI } = await import("openai");
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0 });
}

async function openaiChat(url, request) {
  const events = [];
  const stream = (await openaiClient(url)).chat.completions.stream(request);
  for await (const event of stream) events.push(event);
  return [...events, await stream.finalChatCompletion()];
}

async function openaiResponses(url, request) {
  const events = [];
  const stream = (await openaiClient(url)).responses.stream(request);
  for await (const event of stream) events.push(event);
  return [...events, await stream.finalResponse()];
}

async function anthropicMessages(url, request) {
  const { default: Anthropic } = await import("@anthropic-ai/sdk");
  const events = [];
  const stream = new Anthropic({ baseURL: url, apiKey: KEY, maxRetries: 0 }).messages.stream(request);
  for await (const event of stream) events.push(event);
  return [...events, await stream.finalMessage()];
}

// Each message is the whole that a page shows until then.
async function aiSdkUi(url, request) {
  const { DefaultChatTransport, readUIMessageStream } = await import("ai");
  const { id: chatId, messages, trigger } = request;
  const transport = new DefaultChatTransport({ api: `${url}/api/chat` });
  const stream = await transport.sendMessages({ chatId, messages, trigger });
  const shown = [];
  for await (const message of readUIMessageStream({ stream })) shown.push(structuredClone(message));
  return shown;
}

const SDKS = {
  "openai-chat": openaiChat,
  "openai-responses": openaiResponses,
  "anthropic-messages": anthropicMessages,
  "ai-sdk-ui": aiSdkUi,
};

const [dialect, request] = process.argv.slice(2);
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await SDKS[dialect](line.trim(), JSON.parse(request))));
}
