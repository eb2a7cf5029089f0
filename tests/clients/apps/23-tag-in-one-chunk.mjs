// An agent that looks for `<tool>{...}</tool>` in each chunk of text by itself.
import { answers, choices } from "./reading.mjs";

answers(async (url) => {
  const calls = [];
  let text = "";
  for await (const { delta } of choices(url)) {
    text += (delta?.content ?? "").replace(/<tool>(.*?)<\/tool>/gs, (_, json) => {
      const call = JSON.parse(json);
      calls.push({ name: call.tool_name, arguments: call.arguments });
      return "";
    });
  }
  return { calls, text };
});
