// LangChain's agents for JavaScript.

import { createAgent, tool } from "langchain";
import { chatModel } from "./chat_models.mjs";
import { SYSTEM, TOOLS, main, report } from "./common.mjs";

function made(talk, tools, options = {}) {
  return createAgent({ model: chatModel(talk), tools, systemPrompt: SYSTEM, ...options });
}

function tools(talk) {
  return Object.entries(talk.tools).map(([name, { description, parameters, execute }]) =>
    tool(execute, { name, description, schema: parameters }),
  );
}

async function run(agent, talk) {
  let state = { messages: [] };
  for (const prompt of talk.prompts) {
    const asked = { messages: [...state.messages, { role: "user", content: prompt }] };
    if (talk.streamed) {
      const stream = await agent.stream(asked, { streamMode: ["messages", "values"] });
      for await (const [mode, part] of stream) state = mode === "values" ? part : state;
    } else {
      state = await agent.invoke(asked);
    }
  }
  return state.messages.at(-1).text;
}

const converse = (talk) => run(made(talk, tools(talk)), talk);
const structured = (talk) => run(made(talk, [], { responseFormat: report }), talk);

// A tool of one agent runs another.
function handoff(talk) {
  const transfer = tool(() => converse(talk), {
    name: "transfer_to_forecaster",
    description: "Hand over to the forecaster.",
    schema: TOOLS.get_time.parameters,
  });
  return run(made(talk, [transfer]), talk);
}

await main(converse, { structured, handoff });
