"""An application's own stream to its page: `text|tool_call|tool_result|done|error`.

    data: {"type": "text", "content": "Let me see"}
    data: {"type": "tool_call", "name": "get_weather", "arguments": {"city": "Gent"}}
    data: {"type": "tool_result", "name": "get_weather", "result": {"celsius": 13}}
    data: {"type": "done", "content": "Let me see. It is 13 °C in Gent."}

There is no specification; many applications have such a stream with their own names (`AppNames`).
Each call is complete: a name, and arguments that are a JSON object; other arguments are kept as
their exact source. `done` or `error` ends it. It must be the last dialect in the order of
detection, because it requires least of its events.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from deltatape.dialects._base import Errors, EventShape, Hints, Traits
from deltatape.dialects._chat_request import read_request
from deltatape.dialects._json import Frame
from deltatape.dialects._reply import DialectPolicy
from deltatape.dialects._table import (
    CallWhole,
    DialectTable,
    ErrorStep,
    Path,
    Result,
    TableReducer,
    TableStep,
    TerminalStep,
    TextStep,
    WholeTextStep,
    at,
    path,
)
from deltatape.model.app_names import CONTRACT, AppNames
from deltatape.model.reply import Channel
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Format

_FORMATS = frozenset({Format.SSE, Format.NDJSON})
_FOREIGN_KEYS = frozenset({"choices", "candidates", "jsonrpc", "event_type"})
_FOREIGN_STARTS = (
    "message_",
    "message-",
    "content_block_",
    "content-",
    "text-",
    "reasoning-",
    "tool-input-",
    "tool-call-",
)
NAME = "app-events"
_POLICY = DialectPolicy(explicit_end=True, ids=False, app=True)
_MESSAGES = (path("message"), path("error"), path("error.message"))


def _error_event(status: int, message: str, form: Format) -> tuple[str, Mapping[str, object]]:
    del status, form
    return "", {"type": "error", "content": message}


class AppEvents:
    """The dialect. See `Dialect`.

    Args:
        names: what the application calls its events and their fields.
    """

    name: ClassVar[str] = NAME
    traits: ClassVar[Traits] = Traits(
        shape=EventShape.APP,
        formats=_FORMATS,
        policy=_POLICY,
        errors=Errors(event=_error_event),
        delta_keys=frozenset(
            {
                *("content", "text", "delta", "reasoning", "reasoning_content", "thinking"),
                *("refusal", "arguments", "input"),
            }
        ),
        closing_keys=frozenset({"finish_reason", "stop_reason", "done", "signature"}),
        whole_types=("done", "stop", "end", "completed", "output"),
    )

    def __init__(self, names: AppNames = CONTRACT) -> None:
        self._table = table(names)
        texts, called = names.content, (*names.name, *names.arguments)
        self._telling: dict[str, tuple[Path, ...]] = {
            **dict.fromkeys((*names.done, *names.tool_result), ()),
            **dict.fromkeys(names.tool_call, tuple(map(path, called))),
            **dict.fromkeys(names.text, tuple(map(path, texts))),
        }
        """By event type, the fields: an event must have one of them; () if it needs none."""

    def claims(self, hints: Hints) -> bool:
        if hints.format not in _FORMATS:
            return False
        if any(not _FOREIGN_KEYS.isdisjoint(one) for one in hints.first):
            return False
        found = (self._table.type_of(one) for one in hints.first)
        kinds = {kind for kind in found if kind is not None}
        if any(map(_is_foreign, kinds - self._table.events.keys())):
            return False
        return any(map(self._is_ours, hints.first))

    def serves(self, path: str) -> bool:
        """See `Dialect.serves`: an application's paths are its own."""
        del path
        return False

    def read_request(self, body: bytes, path: str) -> RequestSummary:
        """See `Dialect.read_request`: a history is read where it looks like one."""
        del path
        return read_request(body)

    def reducer(self, request: RequestSummary) -> TableReducer:
        return TableReducer(self._table, request)

    def _is_ours(self, one: Frame) -> bool:
        """Check whether `one` has a type of the contract and a field of such an event."""
        fields = self._telling.get(self._table.type_of(one) or "")
        if fields is None:
            return False
        return not fields or any(_has(one, keys) for keys in fields)


def _has(one: Frame, keys: Path) -> bool:
    """Check whether there is a value at `keys`, even null: a lost name counts, too."""
    holder = at(one, keys[:-1])
    return isinstance(holder, dict) and keys[-1] in holder


def _is_foreign(kind: str) -> bool:
    """Check for another protocol: `thread.run.created`, `RUN_STARTED`, `text-start`."""
    return "." in kind or kind.isupper() or kind.startswith(_FOREIGN_STARTS)


def table(names: AppNames) -> DialectTable:
    """Return the table for an application with these `names`."""
    content = _paths(names.content)
    call = CallWhole(
        id=_paths(names.id), name=_paths(names.name), arguments=_paths(names.arguments)
    )
    meanings: Sequence[tuple[tuple[str, ...], Sequence[TableStep]]] = (
        (names.error, (ErrorStep(message=(*content, *_MESSAGES)), TerminalStep(normal=False))),
        (names.done, (WholeTextStep(text=content), TerminalStep())),
        (names.tool_result, (Result(id=_paths(names.id), name=_paths(names.name)),)),
        (names.tool_call, (call,)),
        (names.reasoning, (TextStep(channel=Channel.REASONING, text=content),)),
        (names.text, (TextStep(channel=Channel.TEXT, text=content),)),
    )
    return DialectTable(
        name=NAME,
        terminator=" or ".join(dict.fromkeys((*names.done, *names.error))),
        policy=_POLICY,
        type_keys=names.type,
        sentinel=True,
        final=True,
        due=frozenset({None}),
        events={kind: steps for kinds, steps in meanings for kind in kinds},
    )


def _paths(names: tuple[str, ...]) -> tuple[Path, ...]:
    return tuple(map(path, names))
