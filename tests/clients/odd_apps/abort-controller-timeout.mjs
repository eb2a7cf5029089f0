// AbortSignal.timeout: after 600 ms without an end the request is made again, once.
const base = process.env.OPENAI_BASE_URL;
const body = { model: "gpt-4.1-mini", messages: [{ role: "user", content: "Are you there?" }], stream: true };

async function ask(milliseconds) {
  const response = await fetch(`${base}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(milliseconds),
  });
  return await response.text();
}

const text = await ask(600).catch((error) => {
  console.log(error.name, "- again");
  return ask(5000);
});
console.log(text.length > 0);
