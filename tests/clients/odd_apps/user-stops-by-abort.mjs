// A stop button: stream.abort() of Anthropic's SDK; the text so far stays in the chat.
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ apiKey: "none" });
const messages = [{ role: "user", content: "Tell me a long story" }];
const stream = client.messages.stream({ model: "claude-sonnet-4-5", max_tokens: 500, messages });
let shown = "";
stream.on("text", (text) => {
  shown += text;
  if (shown.length > 60) stream.abort();
});
await stream.done().catch(() => {});
messages.push({ role: "assistant", content: shown.trimEnd() });
messages.push({ role: "user", content: "Stop, in one sentence please" });
const message = await client.messages.stream({ model: "claude-sonnet-4-5", max_tokens: 500, messages }).finalMessage();
console.log(message.content[0].text);
