// What the applications here share and do right: they read server-sent events, and print.
//
// Each application exports nothing: it tells `answers` how to make calls of the stream at a URL.
// Each line of stdin is such a URL; for each, one line of stdout: {"calls", "text"} as the
// application would run and show them, or {"error"} with what it throws.
import { createInterface } from "node:readline";

async function ask(url) {
  return fetch(url, { method: "POST", body: "{}", headers: { "content-type": "application/json" } });
}

// The stream in the pieces in which it comes. For each one that was read, stderr gets a line with the
// URL; the server sends the next one then: two that come at once could be read as one.
export async function pieces(url) {
  const told = new TransformStream({
    transform(piece, next) {
      next.enqueue(piece);
      console.error(url);
    },
  });
  return (await ask(url)).body.pipeThrough(told);
}

// The data of each event, as JSON.
export async function* events(url) {
  const { body } = await ask(url);
  let buffer = "";
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    buffer += text;
    const frames = buffer.split(/\r?\n\r?\n/);
    buffer = frames.pop();
    for (const frame of frames) {
      const lines = frame.split(/\r?\n/).filter((line) => line.startsWith("data:"));
      const data = lines.map((line) => line.slice(5).replace(/^ /, "")).join("\n");
      if (data && data !== "[DONE]") yield JSON.parse(data);
    }
  }
}

// The first choice of each chunk of a chat completion.
export async function* choices(url) {
  for await (const chunk of events(url)) {
    if (chunk.choices?.length) yield chunk.choices[0];
  }
}

// Id, name and arguments, as text.
const plain = ({ id, name, arguments: args }) => [
  id ?? null,
  name ?? null,
  typeof args === "string" ? args : JSON.stringify(args ?? null),
];

export async function answers(run) {
  for await (const url of createInterface({ input: process.stdin })) {
    let told;
    try {
      const { calls, text = null } = await run(url);
      told = { calls: calls.map(plain), text };
    } catch (problem) {
      told = { error: `${problem.name}: ${problem.message}` };
    }
    console.log(JSON.stringify(told));
  }
  process.exit(); // connections of streams that were left early are still open
}
