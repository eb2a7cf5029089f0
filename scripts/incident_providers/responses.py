"""Incident 2: the Responses API as a provider streams it.

A function call is announced by `response.output_item.added` with its name and no arguments; deltas
follow, which name the item and not the tool; `response.output_item.done` has all of it.
"""

import json
from collections.abc import Iterator

from incident_providers.wire import FIRST_TOKEN_S, Asked, Send, event, pieces, words

_LOOK = "Let me look that up."
_QUERY = '{"query": "ferry strike Lisbon today"}'
_STALL_S = 12.0
Json = dict[str, object]


class _Stream:
    """Numbers the events of one response."""

    def __init__(self, number: int) -> None:
        self._response = {"id": f"resp_{number}", "object": "response", "model": "incident-model"}
        self._next = 0
        self._output: list[Json] = []

    def send(self, kind: str, fields: Json, after_s: float = 0.02) -> Send:
        """An event."""
        value = {"type": kind, "sequence_number": self._next, **fields}
        self._next += 1
        return Send(event(value, kind), after_s)

    def begin(self) -> Iterator[Send]:
        """The response is created."""
        begun: Json = {"response": {**self._response, "status": "in_progress", "output": []}}
        yield self.send("response.created", begun, FIRST_TOKEN_S)
        yield self.send("response.in_progress", begun)

    def message(self, sentence: str) -> Iterator[Send]:
        """An item of text."""
        at = len(self._output)
        item: Json = {"id": f"msg_{at}", "type": "message", "role": "assistant"}
        place: Json = {"item_id": item["id"], "output_index": at, "content_index": 0}
        part: Json = {"type": "output_text", "text": "", "annotations": []}
        yield self._added({**item, "status": "in_progress", "content": []})
        yield self.send("response.content_part.added", {**place, "part": part})
        for word in words(sentence):
            yield self.send("response.output_text.delta", {**place, "delta": word})
        yield self.send("response.output_text.done", {**place, "text": sentence})
        part = {**part, "text": sentence}
        yield self.send("response.content_part.done", {**place, "part": part})
        yield self._done({**item, "status": "completed", "content": [part]})

    def call_opened(self) -> Send:
        """A call is announced."""
        return self._added({**self._call(), "status": "in_progress", "arguments": ""})

    def call(self) -> Iterator[Send]:
        """An item that is a call."""
        place: Json = {"item_id": "fc_search_1", "output_index": len(self._output)}
        yield self.call_opened()
        for piece in pieces(_QUERY, 6):
            delta = {**place, "delta": piece}
            yield self.send("response.function_call_arguments.delta", delta)
        done = {**place, "arguments": _QUERY}
        yield self.send("response.function_call_arguments.done", done)
        yield self._done({**self._call(), "status": "completed", "arguments": _QUERY})

    def end(self) -> Send:
        """The response is complete."""
        response = {**self._response, "status": "completed", "output": self._output}
        return self.send("response.completed", {"response": response})

    def _added(self, item: Json) -> Send:
        at = len(self._output)
        return self.send("response.output_item.added", {"output_index": at, "item": item})

    def _call(self) -> Json:
        return {
            "id": "fc_search_1",
            "type": "function_call",
            "call_id": "call_search_1",
            "name": "web_search",
        }

    def _done(self, item: Json) -> Send:
        self._output.append(item)
        at = len(self._output) - 1
        return self.send("response.output_item.done", {"output_index": at, "item": item})


def news(asked: Asked) -> Iterator[Send]:
    """A sound provider: a sentence and a call, then what the history allows to say."""
    stream = _Stream(len(asked["input"]))
    told = json.dumps(asked["input"])
    yield from stream.begin()
    if "Ferry strike called off" in told:
        yield from stream.message("The ferry strike was called off today.")
    elif "needs a query" in told:
        yield from stream.message("I am sorry, the search does not work.")
    elif sum(item.get("role") == "user" for item in asked["input"]) > 1:
        yield from stream.message("I am sorry, I have not searched for anything yet.")
    else:
        yield from stream.message(_LOOK)
        yield from stream.call()
    yield stream.end()


def news_stalled(asked: Asked) -> Iterator[Send]:
    """Upstream: the call is announced; then nothing comes for long, and then the end."""
    stream = _Stream(len(asked["input"]))
    yield from stream.begin()
    yield from stream.message(_LOOK)
    yield stream.call_opened()
    yield Send(b": still here\n\n", _STALL_S)
