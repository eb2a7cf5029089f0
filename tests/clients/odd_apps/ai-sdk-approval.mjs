// A tool without execute: the page asks the user, and the result comes with a new request.
import { createAnthropic } from "@ai-sdk/anthropic";
import { streamText, tool } from "ai";
import { z } from "zod";

const anthropic = createAnthropic({ apiKey: "none", baseURL: `${process.env.ANTHROPIC_BASE_URL}/v1` });
const tools = { pay: tool({ inputSchema: z.object({ to: z.string(), amount: z.number() }) }) };
const messages = [{ role: "user", content: "Pay Kim 20" }];
const first = streamText({ model: anthropic("claude-sonnet-4-5"), messages, tools });
const calls = await first.toolCalls;
messages.push(...(await first.response).messages);
messages.push({
  role: "tool",
  content: calls.map(({ toolCallId, toolName }) => ({
    type: "tool-result",
    toolCallId,
    toolName,
    output: { type: "text", value: "The user did not allow it." },
  })),
});
console.log(await streamText({ model: anthropic("claude-sonnet-4-5"), messages, tools }).text);
