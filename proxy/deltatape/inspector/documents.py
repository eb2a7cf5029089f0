"""Makes the documents of an exchange, in a separate process: see `processes`.

A question is a line of JSON, an answer a line of JSON and then a body. Documents are those of the
commands (`why --format json`, ...) with two differences: tapes have the names in the server's list,
and values too long for a page are cut. Beside the members that were cut, `"cut"` has
`{"bytes": N}` for a text and `{"items": N}` for a list.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import BinaryIO

from deltatape import __version__
from deltatape.compare import VOLATILE, compare_exchanges, first_damage
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.errors import DeltatapeError, TapeFormatError
from deltatape.inspector.yielding import yielding
from deltatape.live.messages import Begin
from deltatape.model.exchange import Exchange
from deltatape.model.explanation import Explanation
from deltatape.model.rule_settings import Settings
from deltatape.model.tape_summary import ALONE, TapeContext
from deltatape.render.diff import ComparedSides, diff_json
from deltatape.render.explanation import explanation_object
from deltatape.render.json_document import VERSION
from deltatape.render.show import surrounded_object
from deltatape.render.steps import steps_object
from deltatape.secret_text.search import secret_strings
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
    """An answer with a body; `fields` are the header fields, without the type."""

    body: bytes
    type: str = _JSON
    status: int = 200
    fields: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class TapePlace:
    """A tape: its name in the list, and its path."""

    id: str
    path: str

    def named(self, path: str) -> str:
        """Return the name of this tape, or of another one in its folder, by its path."""
        if path == self.path:
            return self.id
        return str(PurePath(self.id).with_name(PurePath(path).name))


@dataclass(frozen=True, slots=True)
class _Around:
    """An exchange with its context, for the explanation."""

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
        makers: Mapping[str, Callable[[], Answer | dict[str, object]]] = {
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
        if isinstance(made, Answer):
            return made
        full = bool(question.get("full"))
        return Answer(body=_dumped(cut({"version": VERSION, **made}, place, full=full)))

    def _analysis(self, place: TapePlace, number: int) -> Analysis:
        return analyse(_exchange(place, number), self._settings.app)

    def _show(self, place: TapePlace, number: int) -> dict[str, object]:
        around = self._around(open_recording(place.path), number)
        logs = around.context.logs
        return surrounded_object(around.exchanges, number, self._settings, logs, alone=around.alone)

    def _why(self, place: TapePlace, number: int) -> dict[str, object]:
        tape = open_recording(place.path)
        around = self._around(tape, number)
        explanation = explain(around.exchanges, number, self._settings, around.context)
        if not around.whole:  # of what was not read, nothing is known
            explanation = replace(explanation, elsewhere=())
        return explanation_object(_located(explanation, tape))

    def _steps(self, place: TapePlace, number: int) -> dict[str, object]:
        tape = open_recording(place.path)
        around = self._around(tape, number)
        explanation = explain(around.exchanges, number, self._settings, around.context)
        return steps_object(stepping(_located(explanation, tape), around.exchanges, self._settings))

    def _around(self, tape: Tape, number: int) -> _Around:
        """Return an exchange with its context.

        Raises:
            DeltatapeError: there is no such exchange; the tape is damaged before its end.
        """
        if isinstance(tape, ShardedTape):
            if tape.missing:
                return _Around((tape[number],), ALONE, alone=True)
        elif is_large(tape):
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

    def _diff(
        self, place: TapePlace, number: int, question: Mapping[str, object]
    ) -> dict[str, object]:
        other = TapePlace(str(question["other_tape"]), str(question["other_path"]))
        right_number = int(str(question["other_exchange"]))
        left = self._analysis(place, number)
        right = self._analysis(other, right_number)
        hop = ComparedSides(
            left=f"{place.id}#{number}",
            right=f"{other.id}#{right_number}",
            comparison=compare_exchanges(left, right, VOLATILE),
        )
        made: dict[str, object] = json.loads(diff_json([hop], first_damage([hop.comparison])))
        return made

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
        # Seldom asked for, and it imports all importers and exporters: a tenth of the start.
        from deltatape.exporters.copies import copied  # noqa: PLC0415 - see above

        path = os.path.abspath(place.path)  # noqa: PTH100 - Path.resolve would follow links
        text = copied(kind, self._analysis(place, number), path, __version__)
        return Answer(body=text.encode("utf-8", "backslashreplace"), type=_TEXT)


def _exchange(place: TapePlace, number: int) -> Exchange:
    return open_recording(place.path)[number]


def _located(explanation: Explanation, tape: Tape) -> Explanation:
    """Return an explanation whose findings name the shards that they are on."""
    if not isinstance(tape, ShardedTape):
        return explanation
    return replace(
        explanation,
        tape=tape.place_of(explanation.exchange),
        findings=tuple(map(tape.on_its_tape, explanation.findings)),
        elsewhere=tuple(map(tape.on_its_tape, explanation.elsewhere)),
    )


class _ForPages:
    """Cuts a document for a page, and hides secrets; see the module."""

    def __init__(
        self, place: TapePlace | None, longest: int, most: int, secrets: Mapping[str, str]
    ) -> None:
        self._place = place
        self._longest, self._most = longest, most
        self._secrets = secrets

    def member(self, value: object) -> object:
        """Return a member of a document, or all of it."""
        match value:
            case str():
                return self._secrets.get(value, value)[: self._longest]
            case dict():
                made = {key: self.member(each) for key, each in value.items()}
                tape = made.get("tape")
                if self._place is not None and isinstance(tape, str):
                    made["tape"] = self._place.named(tape)
                cut = {key: lost for key, each in value.items() if (lost := self._lost(each))}
                return {**made, "cut": cut} if cut else made
            case list() | tuple():
                return [self.member(each) for each in value[: self._most]]
            case _:
                return value

    def _lost(self, value: object) -> Mapping[str, int] | None:
        """Return the whole size of a member that is cut; None if it is not."""
        match value:
            case str() if len(value) > self._longest:
                return {"bytes": len(value.encode("utf-8", "surrogatepass"))}
            case list() | tuple() if len(value) > self._most:
                return {"items": len(value)}
            case list() | tuple() if value and isinstance(value[0], str):
                return next(filter(None, map(self._lost, value)), None)
            case _:
                return None


def cut(document: object, place: TapePlace | None = None, *, full: bool = False) -> object:
    """Return a document as pages get it, without secrets.

    Args:
        document: as a command prints it.
        place: the place of its tape, if tapes are to have the names of the list.
        full: whether to keep all of what is long.
    """
    longest, most = (sys.maxsize, sys.maxsize) if full else (LONGEST, MOST)
    return _ForPages(place, longest, most, secret_strings(document, most)).member(document)


def cuts(document: object, sizes: Sequence[tuple[int, int]]) -> Iterator[object]:
    """Yield a document as `cut` returns it, ever shorter.

    Args:
        document: as a command prints it.
        sizes: the longest text and the longest list, at first and each time after that.
    """
    secrets = secret_strings(document, sizes[0][1])
    for longest, most in sizes:
        yield _ForPages(None, longest, most, secrets).member(document)


def _problem(status: int, what: str) -> Answer:
    return Answer(body=_dumped({"version": VERSION, "error": what}), status=status)


def _dumped(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def serve(begin: Mapping[str, object], source: BinaryIO, out: BinaryIO) -> None:
    """Answer questions, one a line, until the input ends."""
    documents = Documents(Begin(settings=_mapping(begin["settings"])).rules())
    for line in source:
        with yielding():
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
