// Vercel's AI SDK: several steps by itself, zod defaults in the tool's input.
import { createOpenAI } from "@ai-sdk/openai";
import { stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const openai = createOpenAI({ apiKey: "sk-none", baseURL: process.env.OPENAI_BASE_URL });
const result = streamText({
  model: openai.chat("gpt-4.1-mini"),
  prompt: "Weather in Turin and Genoa?",
  stopWhen: stepCountIs(4),
  tools: {
    weather: tool({
      inputSchema: z.object({ city: z.string(), unit: z.enum(["C", "F"]).default("C") }),
      execute: async ({ city, unit }) => ({ city, degrees: city === "Turin" ? 12 : 17, unit }),
    }),
  },
});
console.log(await result.text);
