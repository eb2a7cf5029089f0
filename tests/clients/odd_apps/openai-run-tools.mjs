// The SDK of OpenAI runs the tools by itself.
import OpenAI from "openai";

const client = new OpenAI({ apiKey: "sk-none" });
const runner = client.chat.completions.runTools({
  model: "gpt-4.1-mini",
  stream: true,
  messages: [{ role: "user", content: "Time in Oslo and Lima?" }],
  tools: [
    {
      type: "function",
      function: {
        name: "time",
        parse: JSON.parse,
        function: async ({ city }) => (city === "Oslo" ? "12:00" : "06:00"),
        parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
      },
    },
  ],
});
console.log(await runner.finalContent());
