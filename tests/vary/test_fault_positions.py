import pytest

from deltatape.errors import UsageError
from deltatape.model.exchange import Exchange
from deltatape.mutate import SeededChoices
from deltatape.rules.progress import SilencePhase
from deltatape.vary.fault_positions import (
    MIDDLE,
    AnswerPosition,
    AnswerPositions,
    PlaceKind,
    parse_duration,
    parse_where,
)
from helpers.chat import FINISH
from helpers.mutated import START, WHOLE, chat, imported, in_pieces
from helpers.taped import taped
from helpers.varied import STEMS, TWO, of

CALL = chat(START, *in_pieces('{"a"', ':"b"}'), FINISH)
"""Events: role, open, two fragments, finish, [DONE]."""


def places(exchange: Exchange, seed: int = 0) -> AnswerPositions:
    return AnswerPositions(exchange, SeededChoices(seed))


def at(phase: SilencePhase) -> AnswerPosition:
    return AnswerPosition(kind=PlaceKind.PHASE, phase=phase)


def starts(exchange: Exchange) -> list[int]:
    return [start for start, _ in places(exchange).spans]


def test_an_event_is_told_by_its_number_its_bytes_or_a_time() -> None:
    here = places(taped(TWO))
    assert [here.event(parse_where(text)) for text in ("event:1", "event:2")] == [1, None]
    assert [here.event(parse_where(f"byte:{at}")) for at in (0, 8, 9, 18, 19)] == [
        *(0, 0, 1),
        *(None, None),
    ]
    assert [here.event(parse_where(text)) for text in ("5ms", "15ms", "21ms")] == [0, 1, None]
    assert here.event(MIDDLE) == 1


def test_offsets_are_those_of_events_bytes_and_times() -> None:
    here = places(taped(TWO))
    texts = ("event:1", "event:2", "event:3", "byte:18", "byte:19", "15ms", "1s")
    assert [here.offset(parse_where(text)) for text in texts] == [9, 18, None, 18, None, 9, None]
    assert here.offset(MIDDLE) == 9


def test_the_middle_of_a_body_without_events_is_its_middle_byte() -> None:
    assert places(imported(b"<html></html>")).offset(MIDDLE) == 6
    assert places(imported(b"")).offset(MIDDLE) is None
    assert places(imported(b"")).event(MIDDLE) is None
    assert places(imported(b"")).border(parse_where("event:0")) is None


def test_before_the_first_is_at_the_beginning_also_of_nothing() -> None:
    for exchange in (CALL, imported(b""), taped((), framing=None)):
        assert places(exchange).border(at(SilencePhase.BEFORE_FIRST)) == 0
        assert places(exchange).offset(at(SilencePhase.BEFORE_FIRST)) == 0
    assert places(CALL).event(at(SilencePhase.BEFORE_FIRST)) == 0
    assert places(imported(b"")).event(at(SilencePhase.BEFORE_FIRST)) is None


def test_in_arguments_some_are_still_to_come() -> None:
    fragments = starts(CALL)[2:5]
    offsets = {places(CALL, seed).offset(at(SilencePhase.IN_ARGUMENTS)) for seed in range(200)}
    assert None not in offsets
    assert fragments[1] in offsets
    assert not offsets & {fragments[0], fragments[2]}
    assert all(fragments[0] < (offset or 0) < fragments[2] for offset in offsets)
    borders = {places(CALL, seed).border(at(SilencePhase.IN_ARGUMENTS)) for seed in range(20)}
    assert borders == {fragments[1]}


def test_behind_a_call_is_in_front_of_the_next_event() -> None:
    assert places(CALL).offset(at(SilencePhase.AFTER_CALL)) == starts(CALL)[4]
    assert places(WHOLE).event(at(SilencePhase.AFTER_CALL)) == 2
    cut = chat(START, *in_pieces('{"a":1}'), done=False)
    assert places(cut).offset(at(SilencePhase.AFTER_CALL)) is None
    assert places(of("ollama")).offset(at(SilencePhase.AFTER_CALL)) is not None


def test_before_the_end_all_else_has_come() -> None:
    assert places(CALL).offset(at(SilencePhase.BEFORE_END)) == starts(CALL)[4]
    assert places(chat(START, done=False)).offset(at(SilencePhase.BEFORE_END)) is None


def test_in_a_stream_that_nobody_can_read_all_data_is_text() -> None:
    unknown = taped((*TWO, (30, b"data: \n\n")), target=b"/of/nobody")
    numbers = {places(unknown, seed).event(at(SilencePhase.IN_TEXT)) for seed in range(20)}
    assert numbers == {0, 1}
    assert places(unknown).offset(at(SilencePhase.IN_ARGUMENTS)) is None


def test_a_document_is_struck_inside() -> None:
    here = places(imported(b'{"choices":[{"index":0,"message":{"content":"Hi"}}]}'))
    assert 0 < (here.offset(at(SilencePhase.IN_TEXT)) or 0) < 52


@pytest.mark.parametrize("stem", STEMS)
def test_every_dialect_has_a_text_and_calls_to_be_struck(stem: str) -> None:
    exchange = of(stem)
    phases = [SilencePhase.BEFORE_FIRST, SilencePhase.IN_TEXT]
    if stem != "openai-completions":
        phases.append(SilencePhase.IN_ARGUMENTS)
    for phase in phases:
        offset = places(exchange).offset(at(phase))
        assert offset is not None
        assert offset < len(exchange.body)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("event:3", AnswerPosition(kind=PlaceKind.EVENT, number=3)),
        ("byte:0", AnswerPosition(kind=PlaceKind.BYTE)),
        ("1.5s", AnswerPosition(kind=PlaceKind.TIME, number=1_500_000_000)),
        ("in-text", AnswerPosition(kind=PlaceKind.PHASE, phase=SilencePhase.IN_TEXT)),
        ("arguments", AnswerPosition(kind=PlaceKind.PHASE, phase=SilencePhase.IN_ARGUMENTS)),
        ("end", AnswerPosition(kind=PlaceKind.PHASE, phase=SilencePhase.BEFORE_END)),
    ],
)
def test_a_place_is_an_event_a_byte_a_time_or_a_phase(text: str, expected: AnswerPosition) -> None:
    assert parse_where(text) == expected


@pytest.mark.parametrize("text", ["", "middle", "event:", "event:-1", "byte:x", "5", "1h"])
def test_anything_else_is_no_place(text: str) -> None:
    with pytest.raises(UsageError, match=r"invalid position.*event:N.*before-first, in-text"):
        parse_where(text)


def test_durations_are_in_nanoseconds() -> None:
    assert [parse_duration(text) for text in ("20ms", "2s", "1m")] == [
        20_000_000,
        2_000_000_000,
        60_000_000_000,
    ]
    with pytest.raises(UsageError, match="'soon': invalid duration; use 500ms, 30s or 2m"):
        parse_duration("soon")
