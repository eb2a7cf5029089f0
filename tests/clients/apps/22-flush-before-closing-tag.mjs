// An agent whose model writes `<tool>{...}</tool>` into its text. Its parser holds back what may be
// the start of the closing tag; all else in a tool it hands on at once, and the agent runs it.
import { answers, choices } from "./reading.mjs";

const PREFIXES = ["<", "</", "</t", "</to", "</too", "</tool", "<t", "<to", "<too", "<tool"];

class ToolCallParser {
  buffer = "";
  inTool = false;

  constructor(onText, onTool) {
    Object.assign(this, { onText, onTool });
  }

  feed(text) {
    this.buffer += text;
    for (;;) {
      const tag = this.inTool ? "</tool>" : "<tool>";
      const at = this.buffer.indexOf(tag);
      if (at < 0) break;
      this.flush(at);
      this.buffer = this.buffer.slice(tag.length);
      this.inTool = !this.inTool;
    }
    if (!PREFIXES.some((prefix) => this.buffer.endsWith(prefix))) this.flush(this.buffer.length);
  }

  flush(length) {
    const content = this.buffer.slice(0, length);
    this.buffer = this.buffer.slice(length);
    if (content) (this.inTool ? this.onTool : this.onText)(content);
  }
}

answers(async (url) => {
  let text = "";
  const calls = [];
  const parser = new ToolCallParser(
    (shown) => (text += shown),
    (json) => {
      const { tool_name: name, arguments: args } = JSON.parse(json);
      calls.push({ name, arguments: args });
    },
  );
  for await (const { delta } of choices(url)) parser.feed(delta?.content ?? "");
  return { calls, text };
});
