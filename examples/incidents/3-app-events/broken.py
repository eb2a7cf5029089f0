"""As it went wrong: each chunk of the provider becomes an event of the application at once.

The name stands in the chunk that opens a call, the arguments in later ones, so no chunk has both;
and two fields change places on the way, so that `arguments` is the number of the chunk.
"""

# ruff: noqa: INP001 - a program
from collections.abc import Iterator
from dataclasses import dataclass

from service import Json, chunks, get_stock_analysis, log, serve


@dataclass
class ToolCall:
    """A call, for the page."""

    name: str
    arguments: object
    chunk: object

    def event(self) -> Json:
        """As the page gets it."""
        return {"type": "tool_call", "name": self.name, "arguments": self.arguments}


def parse_stream(messages: list[Json]) -> Iterator[Json | ToolCall]:
    """Text events and tool calls, as they come."""
    for number, chunk in enumerate(chunks(messages)):
        delta = chunk["choices"][0]["delta"]
        if delta.get("content"):
            yield {"type": "text", "content": delta["content"]}
        for part in delta.get("tool_calls") or ():
            function = part["function"]
            if function.get("arguments"):
                yield ToolCall(function.get("name"), number, function["arguments"])


def events(messages: list[Json]) -> Iterator[Json]:
    """The answer to the page."""
    tools = {"get_stock_analysis": get_stock_analysis}
    for each in parse_stream(messages):
        if not isinstance(each, ToolCall):
            yield each
            continue
        yield each.event()
        if each.name in tools:
            result = tools[each.name](**each.arguments)
            yield {"type": "tool_result", "name": each.name, "result": result}
        else:
            log(f"no tool is called {each.name}")


if __name__ == "__main__":
    serve(events)
