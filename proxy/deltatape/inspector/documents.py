"""Makes the documents of an exchange, in a process of their own: see `processes`.

A question is a line of JSON, an answer a line of JSON and then a body. Documents are those of the
commands (`why --format json`, ...) but for two things: tapes have the names under which the server
lists them, and what is too long for a page is cut, which the document says: `"cut"` beside the
members that were cut has `{"bytes": N}` for a text and `{"items": N}` for a list.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import BinaryIO

from deltatape import __version__
from deltatape.compare import VOLATILE, compare_exchanges, first_damage
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.errors import DeltatapeError, TapeFormatError
from deltatape.exporters.copies import copied
from deltatape.live.messages import Begin
from deltatape.model.exchange import Exchange
from deltatape.model.explanation import ALONE, Explanation, TapeContext
from deltatape.model.rule_settings import Settings
from deltatape.render.diff import ComparedSides, diff_json
from deltatape.render.explanation import explanation_json
from deltatape.render.show import surrounded_json
from deltatape.render.steps import steps_json
from deltatape.store.reader import Tape
from deltatape.store.shards import ShardedTape, open_recording
from deltatape.store.surroundings import is_large, surroundings
from deltatape.why.explain import explain
from deltatape.why.stepping import stepping

LONGEST = 64 << 10
"""Characters of a text that a page gets unless it asks for all of it."""
MOST = 10_000
"""Items of a list."""
MAX_RAW = 1 << 20
"""Bytes of one answer with bytes."""
_JSON = "application/json"
_TEXT = "text/plain; charset=utf-8"
_BYTES = "application/octet-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer with a body; `fields` of its head, without the type."""

    body: bytes
    type: str = _JSON
    status: int = 200
    fields: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class TapePlace:
    """A tape: its name in the list, and where it is."""

    id: str
    path: str

    def named(self, path: str) -> str:
        """Return the name of this tape, or of another one in its folder, by its path."""
        if path == self.path:
            return self.id
        return str(PurePath(self.id).with_name(PurePath(path).name))


@dataclass(frozen=True, slots=True)
class _Around:
    """An exchange with what it is explained by."""

    exchanges: Sequence[Exchange]
    """In the order of their requests, that one among them."""
    context: TapeContext
    whole: bool = True
    """Whether these are all of the tape."""
    alone: bool = False
    """Whether others of its conversation are missing."""


class Documents:
    """Makes documents by the rules of `settings`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def answer(self, question: Mapping[str, object]) -> Answer:
        """Return the answer to a question of the server, which has checked it."""
        place = TapePlace(str(question["tape"]), str(question["path"]))
        number = int(str(question["exchange"]))
        makers: Mapping[str, Callable[[], Answer]] = {
            "show": lambda: self._show(place, number),
            "why": lambda: self._why(place, number),
            "steps": lambda: self._steps(place, number),
            "diff": lambda: self._diff(place, number, question),
            "raw": lambda: self._raw(place, number, question),
            "copy": lambda: self._copy(place, number, str(question["as"])),
        }
        try:
            made = makers[str(question["what"])]()
        except TapeFormatError as error:
            where = f"line {error.line}: " if error.line else ""
            return _problem(422, f"{place.id}: {where}{error.problem}")
        except DeltatapeError as error:  # no such exchange; no such file any more
            return _problem(404, str(error).replace(place.path, place.id))
        except OSError as error:
            return _problem(404, f"{place.id}: {error.strerror or error}")
        if made.type != _JSON or question.get("full"):
            return made
        return replace(made, body=_dumped(cut(json.loads(made.body))))

    def _analysis(self, place: TapePlace, number: int) -> Analysis:
        return analyse(_exchange(place, number), self._settings.app)

    def _show(self, place: TapePlace, number: int) -> Answer:
        tape = open_recording(place.path)
        around = self._around(tape, place, number)
        text = surrounded_json(
            around.exchanges, number, self._settings, around.context.logs, alone=around.alone
        )
        return _document(text, place)

    def _why(self, place: TapePlace, number: int) -> Answer:
        tape = open_recording(place.path)
        around = self._around(tape, place, number)
        explanation = explain(around.exchanges, number, self._settings, around.context)
        if not around.whole:  # of what was not read, nothing is known
            explanation = replace(explanation, elsewhere=())
        return _document(explanation_json(_located(explanation, tape)), place)

    def _steps(self, place: TapePlace, number: int) -> Answer:
        tape = open_recording(place.path)
        around = self._around(tape, place, number)
        explanation = explain(around.exchanges, number, self._settings, around.context)
        found = stepping(_located(explanation, tape), around.exchanges, self._settings)
        return _document(steps_json(found), place)

    def _around(self, tape: Tape, place: TapePlace, number: int) -> _Around:
        """Return what an exchange is explained by.

        Raises:
            DeltatapeError: there is no such exchange; the tape is damaged before its end.
        """
        if isinstance(tape, ShardedTape):
            if tape.missing:
                return _Around((tape[number],), ALONE, alone=True)
        elif is_large(Path(place.path)):
            near = surroundings(tape, number, self._settings.app)
            return _Around(near.exchanges, near.context, whole=False)
        exchanges: list[Exchange] = []
        try:
            exchanges += tape.exchanges()
            context = TapeContext(logs=tape.logs, clients=tape.clients)
        except TapeFormatError:  # what is before the damage can be looked at
            if not any(each.number == number for each in exchanges):
                raise
            context = ALONE
        exchanges.sort(key=lambda exchange: exchange.number)
        if not any(each.number == number for each in exchanges):
            tape[number]  # raises, and says which there are
        return _Around(exchanges, context)

    def _diff(self, place: TapePlace, number: int, question: Mapping[str, object]) -> Answer:
        other = TapePlace(str(question["other_tape"]), str(question["other_path"]))
        right_number = int(str(question["other_exchange"]))
        left = self._analysis(place, number)
        right = self._analysis(other, right_number)
        hop = ComparedSides(
            left=f"{place.id}#{number}",
            right=f"{other.id}#{right_number}",
            comparison=compare_exchanges(left, right, VOLATILE),
        )
        return _document(diff_json([hop], first_damage([hop.comparison])), place)

    def _raw(self, place: TapePlace, number: int, question: Mapping[str, object]) -> Answer:
        exchange = _exchange(place, number)
        request = question["side"] == "request"
        if exchange.upgraded and not request:
            data = b"".join(
                piece.data if piece.wire is None else piece.wire for piece in exchange.frames
            )
        else:
            data = exchange.request.body if request else exchange.body
        start = int(str(question["offset"]))
        end = min(start + min(int(str(question["limit"])), MAX_RAW), len(data))
        if start >= end:  # also where there is nothing at all
            status = 200 if start == len(data) == 0 else 416
            return Answer(
                body=b"",
                type=_BYTES,
                status=status,
                fields={"Content-Range": f"bytes */{len(data)}"},
            )
        return Answer(
            body=data[start:end],
            type=_BYTES,
            status=200 if end - start == len(data) else 206,
            fields={"Content-Range": f"bytes {start}-{end - 1}/{len(data)}"},
        )

    def _copy(self, place: TapePlace, number: int, kind: str) -> Answer:
        path = os.path.abspath(place.path)  # noqa: PTH100 - Path.resolve would follow links
        text = copied(kind, self._analysis(place, number), path, __version__)
        return Answer(body=text.encode("utf-8", "backslashreplace"), type=_TEXT)


def _exchange(place: TapePlace, number: int) -> Exchange:
    return open_recording(place.path)[number]


def _located(explanation: Explanation, tape: Tape) -> Explanation:
    """Return an explanation whose findings are on the shards that they are on."""
    if not isinstance(tape, ShardedTape):
        return explanation
    return replace(
        explanation,
        tape=tape.place_of(explanation.exchange),
        findings=tuple(map(tape.on_its_tape, explanation.findings)),
        elsewhere=tuple(map(tape.on_its_tape, explanation.elsewhere)),
    )


def _document(text: str, place: TapePlace) -> Answer:
    """Return a command's document, in which tapes have the names of the list."""
    return Answer(body=_dumped(_renamed(json.loads(text), place)))


def _renamed(value: object, place: TapePlace) -> object:
    match value:
        case dict():
            return {
                key: place.named(member)
                if key == "tape" and isinstance(member, str)
                else _renamed(member, place)
                for key, member in value.items()
            }
        case list():
            return [_renamed(each, place) for each in value]
        case _:
            return value


def cut(value: object) -> object:
    """Return a document without the rest of what is too long; see the module."""
    match value:
        case dict():
            kept = {key: cut(member) for key, member in value.items()}
            lost = {key: each for key, member in value.items() if (each := _lost(member))}
            return {**kept, "cut": lost} if lost else kept
        case list():
            return [cut(each) for each in value[:MOST]]
        case str():
            return value[:LONGEST]
        case _:
            return value


def _lost(value: object) -> Mapping[str, int] | None:
    """Return the whole size of a member that is cut; None if it is not."""
    match value:
        case str() if len(value) > LONGEST:
            return {"bytes": len(value.encode("utf-8", "surrogatepass"))}
        case list() if len(value) > MOST:
            return {"items": len(value)}
        case list():
            return next(
                filter(None, (_lost(each) for each in value if isinstance(each, str))), None
            )
        case _:
            return None


def _problem(status: int, what: str) -> Answer:
    return Answer(body=_dumped({"version": 1, "error": what}), status=status)


def _dumped(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def serve(begin: Mapping[str, object], source: BinaryIO, out: BinaryIO) -> None:
    """Answer the questions that come as lines, until there are no more."""
    documents = Documents(Begin(settings=_mapping(begin["settings"])).rules())
    for line in source:
        answer = documents.answer(json.loads(line))
        head = {
            "status": answer.status,
            "fields": {"Content-Type": answer.type, **(answer.fields or {})},
            "size": len(answer.body),
        }
        out.write(_dumped(head) + b"\n" + answer.body)
        out.flush()


def _mapping(value: object) -> Mapping[str, object]:
    assert isinstance(value, Mapping)
    return value
