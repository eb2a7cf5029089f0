// Vercel's AI SDK.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import { ANTHROPIC, CHAT, GEMINI, MODEL, RESPONSES, SYSTEM, TOOLS, main, report } from "./common.mjs";

// Their environment variables hold no path in all of them, so the base URLs are given.
function model(talk) {
  if (ANTHROPIC) {
    return createAnthropic({ baseURL: `${process.env.ANTHROPIC_BASE_URL}/v1` })(MODEL);
  }
  if (GEMINI) {
    const baseURL = `${process.env.GOOGLE_GEMINI_BASE_URL}/v1beta`;
    return createGoogleGenerativeAI({ baseURL, apiKey: "none" })(MODEL);
  }
  if (RESPONSES) return createOpenAI().responses(MODEL);
  if (!talk.reasoning) return createOpenAI().chat(MODEL);
  // What streams reasoning_content is another provider, which this package is for.
  const baseURL = process.env.OPENAI_BASE_URL;
  return createOpenAICompatible({ name: "compatible", baseURL, apiKey: "none" })("reasoner");
}

const thinking = {
  anthropic: { thinking: { type: "enabled", budgetTokens: 1024 } },
  google: { thinkingConfig: { includeThoughts: true } },
  openai: { reasoningEffort: "low", reasoningSummary: "auto", store: false },
};

async function run(talk, options = {}) {
  const tools = Object.entries(talk.tools).map(([name, { description, parameters, execute }]) => [
    name,
    tool({ description, inputSchema: parameters, execute }),
  ]);
  const asked = {
    model: model(talk),
    system: SYSTEM,
    ...(tools.length ? { tools: Object.fromEntries(tools) } : {}),
    stopWhen: stepCountIs(6),
    providerOptions: talk.reasoning && !CHAT ? thinking : undefined,
    ...options,
  };
  const messages = [];
  let text;
  for (const prompt of talk.prompts) {
    messages.push({ role: "user", content: prompt });
    if (talk.streamed) {
      const problems = [];
      const result = streamText({ ...asked, messages, onError: ({ error }) => problems.push(error) });
      await result.consumeStream();
      if (problems.length) throw problems[0];
      text = await result.text;
      messages.push(...(await result.response).messages);
    } else {
      const result = await generateText({ ...asked, messages });
      text = result.text;
      messages.push(...result.response.messages);
    }
  }
  return text;
}

// A tool runs another loop.
async function handoff(talk) {
  const transfer_to_forecaster = tool({
    description: "Hand over to the forecaster.",
    inputSchema: TOOLS.get_time.parameters,
    execute: () => run(talk),
  });
  return run(talk, { tools: { transfer_to_forecaster } });
}

const structured = (talk) => run(talk, { output: Output.object({ schema: report }) });

await main((talk) => run(talk), { structured, handoff });
