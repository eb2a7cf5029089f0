// A backend that passes each chunk's call on to its page, and takes the wrong field for arguments.
import { answers, choices } from "./reading.mjs";

answers(async (url) => {
  const calls = [];
  for await (const { delta } of choices(url)) {
    for (const [index, part] of Object.entries(delta?.tool_calls ?? [])) {
      calls.push({ id: part.id, name: part.function?.name, arguments: part.index ?? Number(index) });
    }
  }
  return { calls };
});
