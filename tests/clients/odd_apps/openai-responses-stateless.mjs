// Responses without storage: reasoning goes back encrypted, ids of items are left out.
import OpenAI from "openai";

const client = new OpenAI({ apiKey: "sk-none" });
const tools = [
  { type: "function", name: "height", strict: false, parameters: { type: "object", properties: { of: { type: "string" } } } },
];
const input = [{ role: "user", content: "How high is K2?" }];
const options = { model: "o4-mini", tools, store: false, include: ["reasoning.encrypted_content"] };
for (let step = 0; step < 2; step++) {
  const stream = client.responses.stream({ ...options, input });
  const response = await stream.finalResponse();
  for (const { id, status, ...item } of response.output) {
    delete item.parsed_arguments;
    input.push(item);
    if (item.type === "function_call") {
      input.push({ type: "function_call_output", call_id: item.call_id, output: "8611 m" });
    }
  }
  console.log(response.output_text);
}
