// A chat route that prunes what it sends: no reasoning, and calls of the last message only.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, pruneMessages, stepCountIs, tool } from "ai";
import { z } from "zod";

const openai = createOpenAI({ apiKey: "sk-none", baseURL: process.env.OPENAI_BASE_URL });
const tools = {
  find: tool({ inputSchema: z.object({ q: z.string() }), execute: async ({ q }) => `found ${q}` }),
};
let messages = [];
for (const content of ["Find a", "Find b", "What did you find?"]) {
  messages.push({ role: "user", content });
  messages = pruneMessages({ messages, reasoning: "all", toolCalls: "before-last-message" });
  const done = await generateText({ model: openai.chat("gpt-4.1-mini"), messages, tools, stopWhen: stepCountIs(3) });
  messages.push(...done.response.messages);
  console.log(done.text);
}
