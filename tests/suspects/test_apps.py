"""Applications written without a look at the presets, over streams: the right one comes first.

Each reads chunks as `json.loads` gives them, the way its mistake is written in the wild. The exact
sets are small: their median is told here.
"""

import json
from collections.abc import Callable
from statistics import median
from typing import Any

import pytest

from deltatape.model.request_summary import RepeatedCall
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.suspected import deliver, names, suspects

Chunk = dict[str, Any]
App = Callable[[list[Chunk]], list[dict[str, Any]]]

_INTERLEAVED = (
    calls(entry(0, "c1", name="get", arguments="")),
    calls(entry(1, "c2", name="put", arguments="")),
    calls(entry(0, arguments='{"a":')),
    calls(entry(1, arguments='{"b":')),
    calls(entry(0, arguments="1}")),
    calls(entry(1, arguments="2}")),
    FINISH,
)
_TOGETHER = (
    calls(
        entry(0, "c1", name="get", arguments='{"a":1}'),
        entry(1, "c2", name="put", arguments='{"b":2}'),
    ),
    FINISH,
)
_ENDS_WITH_STOP = (*_INTERLEAVED[:-1], choice({}, "stop"))
_REPEATS_NAMES = (
    calls(entry(0, "c1", name="get", arguments="")),
    calls(entry(0, "c1", name="get", arguments='{"a":')),
    calls(entry(0, "c1", name="get", arguments="1}")),
    FINISH,
)


def _pieces(chunks: list[Chunk]) -> list[Chunk]:
    return [
        piece
        for chunk in chunks
        for each in chunk["choices"]
        for piece in each["delta"].get("tool_calls") or []
    ]


def _start(piece: Chunk, **more: object) -> dict[str, Any]:
    function = piece["function"]
    made = {"id": piece.get("id"), "name": function.get("name"), "arguments": ""}
    return {**made, "arguments": function.get("arguments") or "", **more}


def _one_variable(chunks: list[Chunk]) -> list[dict[str, Any]]:
    current: dict[str, Any] = {}
    for piece in _pieces(chunks):
        if not current or piece.get("id"):
            current = _start(piece)
        else:
            current["arguments"] += piece["function"]["arguments"]
    return [current]


def _pushed(chunks: list[Chunk]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for piece in _pieces(chunks):
        if piece.get("id"):
            made.append(_start(piece))
        else:
            made[-1]["arguments"] += piece["function"]["arguments"]
    return made


def _each_piece(chunks: list[Chunk]) -> list[dict[str, Any]]:
    return [_start(piece) for piece in _pieces(chunks)]


def _in_one_buffer(chunks: list[Chunk]) -> list[dict[str, Any]]:
    made: dict[str, Any] = {"arguments": ""}
    for piece in _pieces(chunks):
        made["arguments"] += piece["function"].get("arguments") or ""
        made["id"] = piece.get("id") or made.get("id")
        made["name"] = piece["function"].get("name") or made.get("name")
    return [made]


def _by_id(chunks: list[Chunk]) -> list[dict[str, Any]]:
    made: dict[str | None, dict[str, Any]] = {}
    for piece in _pieces(chunks):
        if piece.get("id") in made:
            made[piece.get("id")]["arguments"] += piece["function"]["arguments"]
        else:
            made[piece.get("id")] = _start(piece)
    return [*made.values()]


def _merged(
    chunks: list[Chunk], merge: Callable[[dict[str, Any], Chunk], object]
) -> list[dict[str, Any]]:
    made: dict[int, dict[str, Any]] = {}
    for piece in _pieces(chunks):
        if piece["index"] in made:
            merge(made[piece["index"]], piece)
        else:
            made[piece["index"]] = _start(piece)
    return [*made.values()]


def _appended(call: dict[str, Any], piece: Chunk) -> None:
    call["arguments"] += piece["function"].get("arguments") or ""


def _name_lost(call: dict[str, Any], piece: Chunk) -> None:
    _appended(call, piece)
    call["name"] = piece["function"].get("name")


def _id_lost(call: dict[str, Any], piece: Chunk) -> None:
    _appended(call, piece)
    call["id"] = piece.get("id")


def _names_glued(call: dict[str, Any], piece: Chunk) -> None:
    _appended(call, piece)
    call["name"] += piece["function"].get("name") or ""


def _ids_glued(call: dict[str, Any], piece: Chunk) -> None:
    _appended(call, piece)
    call["id"] += piece.get("id") or ""


def _overwritten(call: dict[str, Any], piece: Chunk) -> None:
    call["arguments"] = piece["function"]["arguments"]


def _first_piece_lost(chunks: list[Chunk]) -> list[dict[str, Any]]:
    made: dict[int, dict[str, Any]] = {}
    for piece in _pieces(chunks):
        if piece["index"] not in made:
            made[piece["index"]] = _start(piece, arguments="")
        else:
            made[piece["index"]]["arguments"] += piece["function"]["arguments"]
    return [*made.values()]


def _pieces_parsed(chunks: list[Chunk]) -> list[dict[str, Any]]:
    made: dict[int, dict[str, Any]] = {}
    for piece in _pieces(chunks):
        call = made.setdefault(piece["index"], {**_start(piece), "arguments": {}})
        try:
            call["arguments"].update(json.loads(piece["function"]["arguments"]))
        except ValueError:
            continue
    return [*made.values()]


def _first_of_chunk(chunks: list[Chunk]) -> list[dict[str, Any]]:
    heads = [{**chunk, "choices": [_head(each) for each in chunk["choices"]]} for chunk in chunks]
    return _merged(heads, _appended)


def _head(each: Chunk) -> Chunk:
    pieces = (each["delta"].get("tool_calls") or [])[:1]
    return {**each, "delta": {"tool_calls": pieces}}


def _only_if_told(chunks: list[Chunk]) -> list[dict[str, Any]]:
    reasons = [each.get("finish_reason") for chunk in chunks for each in chunk["choices"]]
    return _merged(chunks, _appended) if "tool_calls" in reasons else []


def _numbers(chunks: list[Chunk]) -> list[dict[str, Any]]:
    return [
        {"id": None, "name": piece["function"].get("name"), "arguments": number}
        for number, chunk in enumerate(chunks)
        for piece in _pieces([chunk])
        if piece["function"].get("arguments")
    ]


_APPS: dict[str, tuple[App, tuple[object, ...], str]] = {
    "one variable": (_one_variable, _INTERLEAVED, "single-current-call"),
    "a list, its last one": (_pushed, _INTERLEAVED, "single-current-call"),
    "each piece a call": (_each_piece, _INTERLEAVED, "each-event-is-a-call"),
    "one buffer": (_in_one_buffer, _REPEATS_NAMES + _TOGETHER, "index-ignored"),
    "by id": (_by_id, _INTERLEAVED, "keyed-by-id"),
    "name overwritten": (
        lambda chunks: _merged(chunks, _name_lost),
        _INTERLEAVED,
        "name-overwritten-by-null",
    ),
    "id overwritten": (
        lambda chunks: _merged(chunks, _id_lost),
        _INTERLEAVED,
        "id-overwritten-by-null",
    ),
    "names glued": (
        lambda chunks: _merged(chunks, _names_glued),
        _REPEATS_NAMES,
        "name-concatenated",
    ),
    "ids glued": (lambda chunks: _merged(chunks, _ids_glued), _REPEATS_NAMES, "id-concatenated"),
    "overwritten": (lambda chunks: _merged(chunks, _overwritten), _INTERLEAVED, "last-piece-wins"),
    "first piece lost": (_first_piece_lost, _TOGETHER, "first-arguments-dropped"),
    "pieces parsed": (_pieces_parsed, _INTERLEAVED, "fragment-parsed-alone"),
    "first of each chunk": (_first_of_chunk, _TOGETHER, "first-entry-only"),
    "only if told": (_only_if_told, _ENDS_WITH_STOP, "finish-only-on-tool-calls"),
    "numbers": (_numbers, _INTERLEAVED, "index-as-arguments"),
}


def _heard(app: App, chunks: tuple[object, ...]) -> tuple[RepeatedCall, ...]:
    """What the application repeats; where arguments are a value it serialises them."""
    parsed: list[Chunk] = json.loads(json.dumps(chunks))
    return tuple(
        RepeatedCall(
            id=one.get("id"),
            name=one.get("name"),
            arguments=text if isinstance(text := one["arguments"], str) else json.dumps(text),
        )
        for one in app(parsed)
    )


@pytest.mark.slow
@pytest.mark.parametrize("case", _APPS)
def test_the_mistake_of_an_application_comes_first(case: str) -> None:
    app, chunks, name = _APPS[case]
    found = suspects(deliver(sse(*chunks)), _heard(app, chunks))
    assert names(found)[0] == name
    assert found[0].exact
    assert found[0].fix.endswith(".")


@pytest.mark.slow
def test_few_others_would_have_done_the_same() -> None:
    sizes = [
        len(suspects(deliver(sse(*chunks)), _heard(app, chunks)))
        for app, chunks, _ in _APPS.values()
    ]
    assert median(sizes) <= 3


def test_an_application_without_a_mistake_is_not_suspected() -> None:
    for chunks in (_INTERLEAVED, _TOGETHER, _ENDS_WITH_STOP, _REPEATS_NAMES):
        heard = _heard(lambda each: _merged(each, _appended), chunks)
        assert suspects(deliver(sse(*chunks)), heard) == ()
