// OpenAI's Agents SDK for JavaScript.

import {
  Agent,
  MemorySession,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  run,
  setTracingDisabled,
  tool,
} from "@openai/agents";
import OpenAI from "openai";
import { CHAT, MODEL, SYSTEM, main, report } from "./common.mjs";

setTracingDisabled(true);

function made(talk, options = {}) {
  const thinks = talk.reasoning && !CHAT;
  const client = new OpenAI();
  return new Agent({
    name: "Assistant",
    instructions: SYSTEM,
    model: CHAT
      ? new OpenAIChatCompletionsModel(client, MODEL)
      : new OpenAIResponsesModel(client, MODEL),
    modelSettings: thinks
      ? {
          reasoning: { effort: "low", summary: "auto" },
          providerData: { include: ["reasoning.encrypted_content"] },
        }
      : {},
    tools: Object.entries(talk.tools).map(([name, each]) => tool({ name, ...each })),
    ...options,
  });
}

async function hold(agent, talk) {
  const session = talk.prompts.length > 1 ? new MemorySession() : undefined;
  let said;
  for (const prompt of talk.prompts) {
    const result = await run(agent, prompt, { session, stream: talk.streamed });
    if (talk.streamed) await result.completed;
    said = result.finalOutput;
  }
  return said;
}

const converse = (talk) => hold(made(talk), talk);
const structured = (talk) => hold(made(talk, { outputType: report }), talk);

function handoff(talk) {
  const forecaster = made(talk, { name: "Forecaster", instructions: "You tell the weather." });
  return hold(made(talk, { name: "Reception", tools: [], handoffs: [forecaster] }), talk);
}

await main(converse, { structured, handoff });
