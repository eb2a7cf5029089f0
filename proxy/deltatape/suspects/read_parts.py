"""Dialects whose calls come in one piece, as steps: Gemini and Ollama.

Gemini can also stream arguments by their JSON paths. What they amount to is the reference's; here
it counts that they come in parts without a name.
"""

from collections.abc import Iterable, Iterator, Sequence

from deltatape.model.reply import ToolCall
from deltatape.model.stream import Event
from deltatape.suspects.members import Object, member, objects, text_of, word
from deltatape.suspects.steps import Blank, Entry, Finish, Phase, Step
from deltatape.wire.json_value import read_object


def gemini_steps(events: Iterable[Event], calls: Sequence[ToolCall]) -> Iterator[Step]:
    """The steps of the first candidate.

    Args:
        events: of the stream.
        calls: of the reply; what streamed arguments amount to.
    """
    opened = {call.start_event: call.arguments for call in calls}
    nameless = _Nameless()
    for event in events:
        outer: Object = read_object(event.data) or {}
        frame = member(outer, "response") or outer
        for _, candidate in objects(frame, "candidates")[:1]:
            for at, part in objects(member(candidate, "content"), "parts"):
                if isinstance(part.get("functionCall"), dict):
                    call = member(part, "functionCall")
                    yield nameless.read(call, event.number, at, opened)
            reason = candidate.get("finishReason")
            if reason is not None:
                yield Finish(event.number, str(reason))


class _Nameless:
    """Gives the first nameless part of a call its arguments, which all of its parts bring."""

    def __init__(self) -> None:
        self._count = -1
        self._owed: str | None = None

    def read(self, call: Object, event: int, at: int, opened: dict[int, str]) -> Entry:
        name, identifier = word(call, "name"), word(call, "id")
        if name or self._count < 0:
            self._count += 1
            streamed = call.get("willContinue") is True or "partialArgs" in call
            self._owed = opened.get(event) if streamed else None
            given = call.get("args")
            text = "{}" if given is None else text_of(given)
            phase = Phase.START if streamed else Phase.WHOLE
            return Entry(
                event, phase, at=at, index=self._count, id=identifier, name=name, text=text
            )
        owed, self._owed = self._owed, None
        return Entry(event, Phase.DELTA, at=at, index=self._count, text=owed or "")


def ollama_steps(events: Iterable[Event]) -> Iterator[Step]:
    """The steps of an answer."""
    for event in events:
        line = read_object(event.data) or {}
        message = member(line, "message")
        for at, entry in objects(message, "tool_calls"):
            function = member(entry, "function")
            given = function.get("arguments")
            text = given if isinstance(given, str) else text_of(given or {})
            identifier, name = word(entry, "id"), word(function, "name")
            yield Entry(event.number, Phase.WHOLE, at=at, id=identifier, name=name, text=text)
        if message and not message.get("content"):
            yield Blank(event.number)
        if line.get("done") is True:
            yield Finish(event.number, word(line, "done_reason") or "stop")
