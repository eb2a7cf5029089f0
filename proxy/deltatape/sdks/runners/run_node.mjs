// What SDKs for Node make of streams. It runs by --eval in a folder with them in node_modules; see
// run_python.py, which speaks the same: argv is the name of a package, then line by line.
import { existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const KEY = "sk-fake-000000";
const MODEL = "m";
const QUESTION = "?";
const ANYTHING = { type: "object" };
const OPTIONS = { apiKey: KEY, maxRetries: 0, timeout: 10_000 };

const made = (calls, text, finish, refused = []) => ({ calls, refused, text, finish: finish ?? null });

// A call; arguments that are no text are written as JSON.
function call(id, name, args) {
  const written = typeof args === "string" ? args : JSON.stringify(args);
  return { id: id ?? null, name: name ?? null, arguments: written ?? "" };
}

const functions = (names) =>
  names.map((name) => ({ type: "function", function: { name, parameters: ANYTHING } }));

function asked(tools) {
  const request = { model: MODEL, messages: [{ role: "user", content: QUESTION }] };
  return tools.length ? { ...request, tools: functions(tools) } : request;
}

async function openaiClient(url) {
  const { default: OpenAI } = await import("openai");
  return new OpenAI({ ...OPTIONS, baseURL: `${url}/v1` });
}

async function openaiChat(url, tools) {
  const client = await openaiClient(url);
  const { completions } = client.chat.completions.stream ? client.chat : client.beta.chat;
  const stream = completions.stream(asked(tools));
  const [choice] = (await stream.finalChatCompletion()).choices;
  if (!choice) return made([], "", null);
  const { content, tool_calls: calls, function_call: old } = choice.message;
  const told = (calls ?? []).map((one) => call(one.id, one.function.name, one.function.arguments));
  if (old) told.push(call(null, old.name, old.arguments));
  return made(told, content ?? "", choice.finish_reason);
}

async function openaiResponses(url, tools) {
  const offered = tools.map((name) => ({ type: "function", name, parameters: ANYTHING, strict: false }));
  const stream = (await openaiClient(url)).responses.stream({ model: MODEL, input: QUESTION, tools: offered });
  const response = await stream.finalResponse();
  const calls = response.output.filter((item) => item.type === "function_call");
  const told = calls.map((one) => call(one.call_id, one.name, one.arguments));
  return made(told, response.output_text ?? "", response.status);
}

async function anthropicMessages(url, tools) {
  const { default: Anthropic } = await import("@anthropic-ai/sdk");
  const client = new Anthropic({ ...OPTIONS, baseURL: url });
  const offered = tools.map((name) => ({ name, input_schema: ANYTHING }));
  const request = { ...asked([]), max_tokens: 64, ...(tools.length ? { tools: offered } : {}) };
  const message = await client.messages.stream(request).finalMessage();
  const of = (type) => message.content.filter((block) => block.type === type);
  const told = of("tool_use").map((one) => call(one.id, one.name, one.input));
  return made(told, of("text").map((one) => one.text).join(""), message.stop_reason);
}

// The parts of Vercel's `streamText`; tools without `execute`: the calls are the application's.
async function aiSdk(model, tools) {
  const { streamText, jsonSchema, tool } = await import("ai");
  const offered = tools.map((name) => [name, tool({ inputSchema: jsonSchema(ANYTHING) })]);
  const { fullStream } = streamText({
    model,
    prompt: QUESTION,
    tools: Object.fromEntries(offered),
    maxRetries: 0,
    onError: () => {}, // else it writes to the console
  });
  const whole = { ...made([], "", null), error: null };
  for await (const part of fullStream) {
    if (part.type === "text-delta") whole.text += part.text;
    if (part.type === "finish") whole.finish = part.finishReason;
    if (part.type === "error") whole.error ??= told(part.error);
    if (part.type === "tool-call" && !part.providerExecuted) {
      (part.invalid ? whole.refused : whole.calls).push(call(part.toolCallId, part.toolName, part.input));
    }
  }
  return whole;
}

async function compatible(url, tools) {
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  return aiSdk(createOpenAICompatible({ name: "p", baseURL: `${url}/v1`, apiKey: KEY })(MODEL), tools);
}

const aiOpenai = (api) => async (url, tools) => {
  const { createOpenAI } = await import("@ai-sdk/openai");
  return aiSdk(createOpenAI({ baseURL: `${url}/v1`, apiKey: KEY })[api](MODEL), tools);
};

async function aiAnthropic(url, tools) {
  const { createAnthropic } = await import("@ai-sdk/anthropic");
  return aiSdk(createAnthropic({ baseURL: `${url}/v1`, apiKey: KEY })(MODEL), tools);
}

const SDKS = {
  openai: { "openai-chat": openaiChat, "openai-responses": openaiResponses },
  "@anthropic-ai/sdk": { "anthropic-messages": anthropicMessages },
  ai: {
    "openai-chat": compatible,
    "openai-responses": aiOpenai("responses"),
    "anthropic-messages": aiAnthropic,
  },
  "@ai-sdk/openai": { "openai-chat": aiOpenai("chat") },
};
const PROVIDERS = ["@ai-sdk/openai-compatible", "@ai-sdk/openai", "@ai-sdk/anthropic"];
const ALSO = { ai: PROVIDERS, "@ai-sdk/openai": ["ai"] }; // packages that do a part of the work

const told = (problem) => ({
  type: problem?.name && problem.name !== "Error" ? problem.name : problem?.constructor?.name ?? typeof problem,
  text: String(problem?.message ?? (problem instanceof Object ? JSON.stringify(problem) : problem)),
});

async function answer(sdk, { url, tools }) {
  try {
    return { error: null, ...(await sdk(url, tools)) };
  } catch (problem) {
    return { ...made([], "", null), error: told(problem) };
  }
}

const packaged = (name) => `node_modules/${name}/package.json`;
const version = (name) => JSON.parse(readFileSync(packaged(name), "utf8")).version;

const name = process.argv[1];
const tell = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
for (const channel of ["log", "info", "debug", "warn"]) console[channel] = console.error;
process.on("unhandledRejection", () => {}); // some throw the same error a second time
const present = [name, ...(ALSO[name] ?? [])].filter((each) => existsSync(packaged(each)));
await import(name); // now, as it may take long
tell(Object.fromEntries(present.map((each) => [each, version(each)])));
for await (const line of createInterface({ input: process.stdin })) {
  const wanted = JSON.parse(line);
  tell(await answer(SDKS[name][wanted.dialect], wanted));
}
