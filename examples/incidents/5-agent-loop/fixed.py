"""Mended: fragments are collected, the assistant's message owns its calls, and the loop ends.

Once results are there, the model may ask for others a few times and then has to answer; a farewell
is answered without it.
"""

# ruff: noqa: INP001 - a program
import json

from provider import SYSTEM, deltas, lines, log, run_tool, say

MAX_CYCLES = 3
FAREWELL = frozenset({"bye", "goodbye", "thanks", "thank", "you", "see", "quit", "exit"})


def is_farewell(text: str) -> bool:
    """Whether nothing but a goodbye was said."""
    words = text.lower().replace(",", " ").strip("!. ").split()
    return bool(words) and FAREWELL.issuperset(words)


def read(conversation: list[dict[str, object]], choice: str) -> dict[str, object]:
    """The assistant's next message."""
    text, calls = "", {}
    for delta, _ in deltas(conversation, tool_choice=choice):
        text += delta.get("content") or ""
        for part in delta.get("tool_calls") or ():
            new = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
            call = calls.setdefault(part["index"], new)
            function = part.get("function") or {}
            call["id"] = call["id"] or part.get("id") or ""
            call["function"]["name"] = call["function"]["name"] or function.get("name") or ""
            call["function"]["arguments"] += function.get("arguments") or ""
    message = {"role": "assistant", "content": text or None}
    return {**message, "tool_calls": list(calls.values())} if calls else message


def run(function: dict[str, str]) -> str:
    """What a tool says, or what is wrong with the call."""
    try:
        return run_tool(function["name"], json.loads(function["arguments"] or "{}"))
    except ValueError as error:
        return json.dumps({"error": str(error)})


def respond(conversation: list[dict[str, object]]) -> str:
    """The assistant's answer to the conversation."""
    for cycle in range(MAX_CYCLES + 1):
        message = read(conversation, "auto" if cycle < MAX_CYCLES else "none")
        calls = message.get("tool_calls", [])
        log(f"cycle {cycle + 1}: has_tool_calls: {bool(calls)}".lower())
        if not calls or cycle == MAX_CYCLES:
            answer = message["content"] or "(the model only calls tools)"
            conversation.append({"role": "assistant", "content": answer})
            return answer
        conversation.append(message)
        for call in calls:
            result = run(call["function"])
            conversation.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    raise AssertionError("the last cycle returns")


def main() -> None:
    """A conversation."""
    conversation = [SYSTEM]
    for line in lines():
        if is_farewell(line):
            say("See you!")
            continue
        conversation.append({"role": "user", "content": line})
        say(respond(conversation))


if __name__ == "__main__":
    main()
