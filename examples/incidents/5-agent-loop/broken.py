"""As it went wrong: an agent loop with four mistakes.

- Each chunk is looked at alone: a call counts if one chunk has its id, its name and arguments that
  parse. What comes in fragments is no call at all.
- The results of tools go into the history, the assistant's message with the calls does not.
- Nothing ends the loop but a number that nobody expects to be reached.
- Every message goes to the model with all tools, also "bye".
"""

# ruff: noqa: INP001 - a program
import json

from provider import SYSTEM, deltas, lines, log, run_tool, say

MAX_ITERATIONS = 5


def calls_of(delta: dict[str, object]) -> list[dict[str, object]]:
    """The calls of one chunk."""
    found = []
    for part in delta.get("tool_calls") or ():
        function = part.get("function", {})
        try:
            arguments = json.loads(function.get("arguments", ""))
        except ValueError:
            continue
        if part.get("id") and function.get("name"):
            found.append({"id": part["id"], "name": function["name"], "arguments": arguments})
    return found


def respond(conversation: list[dict[str, object]]) -> str:
    """The assistant's answer to the conversation."""
    for iteration in range(MAX_ITERATIONS):
        text, found = "", []
        for delta, _ in deltas(conversation):
            text += delta.get("content") or ""
            found += calls_of(delta)
        log(f"iteration {iteration + 1}: has_tool_calls: {bool(found)}".lower())
        if not found:
            return text
        for call in found:
            result = run_tool(call["name"], call["arguments"])
            conversation.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    return "(gave up)"


def main() -> None:
    """A conversation."""
    conversation = [SYSTEM]
    for line in lines():
        conversation.append({"role": "user", "content": line})
        answer = respond(conversation)
        conversation.append({"role": "assistant", "content": answer})
        say(answer or "(nothing)")


if __name__ == "__main__":
    main()
