// What the drivers of JavaScript frameworks share: the conversations, and tools that answer alike.
//
// A driver is run as `driver.mjs DIALECT SCENARIO...` by `deltatape record`. Each scenario is taped on
// a tape of its own, which the path of the base URL names, and is one conversation that is streamed
// and one that is not; `turns` is streamed, `several` is three at once.

import { readFileSync } from "node:fs";
import { z } from "zod";

export const [DIALECT, ...SCENARIOS] = process.argv.slice(2);
export const CHAT = DIALECT === "openai-chat";
export const RESPONSES = DIALECT === "openai-responses";
export const ANTHROPIC = DIALECT === "anthropic-messages";
export const GEMINI = DIALECT === "gemini";
export const MODEL = {
  "openai-chat": "gpt-4.1",
  "openai-responses": "gpt-5",
  "anthropic-messages": "claude-sonnet-4-5",
  gemini: "gemini-2.5-flash",
}[DIALECT];
export const SYSTEM = "You are a helpful assistant with tools.";

const told = JSON.parse(readFileSync(new URL("scenarios.json", import.meta.url), "utf8"));

export const report = z.object({
  city: z.string(),
  degrees: z.number(),
  sunny: z.boolean(),
  note: z.string().default("none"),
});

export const TOOLS = {
  get_weather: {
    description: "Tell the weather in a city.",
    parameters: z.object({
      city: z.string().describe("The name of the city."),
      days: z.number().default(3).describe("For how many days."),
      unit: z.enum(["celsius", "fahrenheit"]).default("celsius").describe("Of the temperature."),
    }),
    execute: ({ city, days, unit }) => `18 degrees ${unit} in ${city} for ${days} days`,
  },
  get_time: {
    description: "Tell the time.",
    parameters: z.object({}),
    execute: () => "12:00",
  },
  search: {
    description: "Search the web.",
    parameters: z.object({ query: z.string(), note: z.string().optional() }),
    execute: ({ query, note }) => `3 results for ${query}${note ? ", with a note" : ""}`,
  },
  convert: {
    description: "Convert an amount of money.",
    parameters: z.object({
      amount: z.number(),
      rate: z.number(),
      account: z.number(),
      share: z.number().default(1),
    }),
    execute: ({ amount, rate, account }) => `converted ${amount} at ${rate} to account ${account}`,
  },
  roll_dice: {
    description: "Roll a die.",
    parameters: z.object({ sides: z.number().default(6) }),
    execute: ({ sides }) => `rolled ${Math.min(sides, 4)}`,
  },
};

// Runs the scenarios. `converse` holds a conversation and makes its own clients, since the base URL
// changes; `special` has by scenario what holds its conversation instead.
export async function main(converse, special = {}) {
  const gateway = process.env.DELTATAPE_URL;
  const urls = Object.entries(process.env).filter(([, value]) => value.startsWith(gateway));
  for (const scenario of SCENARIOS) {
    const own = `${gateway}/s/${DIALECT}-${scenario}`;
    for (const [name, value] of urls) process.env[name] = value.replace(gateway, own);
    const hold = (city, streamed) => held(special[scenario] ?? converse, scenario, city, streamed);
    if (scenario === "several") {
      await Promise.all(["Kyoto", "Nairobi", "Quito"].map((city) => hold(city, true)));
      continue;
    }
    await hold("Paris", true);
    if (scenario !== "turns") await hold("Lisbon", false);
  }
  process.exit(0); // some clients keep connections open
}

async function held(converse, scenario, city, streamed) {
  const { prompts, tools } = told[scenario];
  const talk = {
    scenario,
    prompts: prompts.map((prompt) => prompt.replace("{city}", city)),
    tools: Object.fromEntries(tools.map((name) => [name, TOOLS[name]])),
    streamed,
    reasoning: scenario === "reasoning",
  };
  const place = `${DIALECT}-${scenario}, ${streamed ? "streamed" : "whole"}`;
  try {
    const late = new Promise((_, fail) => setTimeout(() => fail(new Error("60 s")), 60_000));
    const said = await Promise.race([converse(talk), late]);
    console.log(`${place}: ${JSON.stringify(said)?.slice(0, 60)}`);
  } catch (error) {
    console.log(`${place}: gave up: ${error?.name}: ${String(error?.message).slice(0, 300)}`);
  }
}
