// LangGraph for JavaScript: a graph of one's own.

import { tool } from "@langchain/core/tools";
import { MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode, toolsCondition } from "@langchain/langgraph/prebuilt";
import { chatModel } from "./chat_models.mjs";
import { SYSTEM, main } from "./common.mjs";

async function converse(talk) {
  const tools = Object.entries(talk.tools).map(([name, { description, parameters, execute }]) =>
    tool(execute, { name, description, schema: parameters }),
  );
  const model = chatModel(talk).bindTools(tools);
  const ask = async ({ messages }) => ({
    messages: [await model.invoke([{ role: "system", content: SYSTEM }, ...messages])],
  });
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("model", ask)
    .addNode("tools", new ToolNode(tools))
    .addEdge(START, "model")
    .addConditionalEdges("model", toolsCondition)
    .addEdge("tools", "model")
    .compile({ checkpointer: new MemorySaver() });
  const config = { configurable: { thread_id: "1" } };
  let state;
  for (const prompt of talk.prompts) {
    const asked = { messages: [{ role: "user", content: prompt }] };
    if (talk.streamed) {
      const stream = await graph.stream(asked, { ...config, streamMode: ["messages", "values"] });
      for await (const [mode, part] of stream) state = mode === "values" ? part : state;
    } else {
      state = await graph.invoke(asked, config);
    }
  }
  return state.messages.at(-1).text;
}

await main(converse);
