// LangChain's chat models, for LangChain and LangGraph.

import { ChatAnthropic } from "@langchain/anthropic";
import { ChatGoogleGenerativeAI } from "@langchain/google-genai";
import { ChatOpenAI } from "@langchain/openai";
import { ANTHROPIC, CHAT, GEMINI, MODEL } from "./common.mjs";

export function chatModel(talk) {
  const streaming = talk.streamed;
  if (ANTHROPIC) {
    const thinking = talk.reasoning ? { thinking: { type: "enabled", budget_tokens: 1024 } } : {};
    const anthropicApiUrl = process.env.ANTHROPIC_BASE_URL;
    return new ChatAnthropic({ model: MODEL, maxTokens: 2048, streaming, anthropicApiUrl, ...thinking });
  }
  if (GEMINI) {
    const baseUrl = process.env.GOOGLE_GEMINI_BASE_URL;
    return new ChatGoogleGenerativeAI({ model: MODEL, apiKey: "none", streaming, baseUrl });
  }
  // Not `streaming`, with which invoke() of this version never returns; graphs stream by their mode.
  const thinks = talk.reasoning && !CHAT;
  return new ChatOpenAI({
    model: MODEL,
    useResponsesApi: !CHAT,
    ...(thinks ? { reasoning: { effort: "low", summary: "auto" } } : {}),
  });
}
