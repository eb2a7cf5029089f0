import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path

import pytest

from deltatape.diagnose.decode import format_of
from deltatape.model.stream import Event, Format
from deltatape.wire.aws_eventstream import EventStreamDecoder
from deltatape.wire.framer import Decoder
from deltatape.wire.json_array import JsonArrayDecoder
from deltatape.wire.ndjson import NdjsonDecoder
from deltatape.wire.sse import SseDecoder
from helpers.corpus import ROOT, Case, cases, is_present, needs_corpus
from helpers.framing import framed
from helpers.splits import cut, each_alone

pytestmark = needs_corpus

DECODERS: dict[Format, Callable[[], Decoder]] = {
    Format.NDJSON: NdjsonDecoder,
    Format.JSON_ARRAY: JsonArrayDecoder,
    Format.EVENTSTREAM: EventStreamDecoder,
}
KINDS = {
    "ndjson": Format.NDJSON,
    "json-array": Format.JSON_ARRAY,
    "eventstream": Format.EVENTSTREAM,
    "sse": Format.SSE,
}
DERIVED = "chunk"
"""Events that wrap others: an SDK counts the events that it makes of them."""


def folders() -> list[Path]:
    return sorted(ROOT.glob("*--*")) if is_present() else []


def read(folder: Path, name: str) -> dict[str, object]:
    value = json.loads((folder / name).read_text())
    assert isinstance(value, dict)
    return value


def told(folder: Path) -> Format:
    """The format that our detection tells of a case."""
    headers = read(folder, "response.json")["headers"]
    assert isinstance(headers, dict)
    media = str(headers.get("content-type") or "").partition(";")[0].strip().lower()
    return format_of((folder / "body.raw").read_bytes(), media)


def test_a_captured_body_has_the_format_it_was_captured_as(subtests: pytest.Subtests) -> None:
    for folder in folders():
        with subtests.test(folder.name):
            expected = KINDS[str(read(folder, "meta.json")["kind"])]
            if expected is Format.NDJSON and (folder / "body.raw").read_bytes().startswith(b"{\n"):
                expected = Format.JSON  # an error: one pretty-printed document
            assert told(folder) is expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "folder",
    [folder for folder in folders() if told(folder) in DECODERS],
    ids=lambda folder: folder.name,
)
def test_a_captured_body_is_framed_as_by_the_sdk_however_it_is_cut(folder: Path) -> None:
    body = (folder / "body.raw").read_bytes()
    decoder = DECODERS[told(folder)]
    whole = framed(decoder(), [body])
    expected = read(folder, "expected.json").get("sdk_events")
    if expected is not None and not any(event.type == DERIVED for event in whole.events):
        assert len(whole.events) == expected
    assert (whole.anomalies, whole.pending) == ([], None)
    assert all(isinstance(json.loads(data), dict) for data in whole.data())
    assert framed(decoder(), each_alone(body)) == whole
    for at in range(1, len(body), max(1, len(body) // 97)):
        assert framed(decoder(), cut(body, [at])) == whole


SMALL = 8 * 1024
"""Bodies up to this size are cut at every byte, larger ones near event borders and by a stride."""
MARGIN = 4
STRIDE = 11
CASES = list(cases("openai-chat"))


def clone(decoder: SseDecoder) -> SseDecoder:
    """A decoder in the state of one that stands between two events, with nothing noted."""
    made = SseDecoder()
    vars(made).update(vars(decoder))
    made._held = deepcopy(decoder._held)
    made._block = type(decoder._block)()
    made.comments, made.anomalies = [], []
    return made


def feed(decoder: SseDecoder, *pieces: bytes) -> list[Event]:
    """The events of `pieces`."""
    return [event for piece in pieces for event in decoder.feed(piece, 0, None)]


def offsets(start: int, end: int, *, every: bool) -> Iterator[int]:
    """Where to cut an event that spans `start` to `end`."""
    for at in range(start + 1, end):
        near = min(at - start, end - at) <= MARGIN
        if every or near or at % STRIDE == 0:
            yield at


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_no_cut_inside_a_captured_stream_changes_its_events(case: Case) -> None:
    """Feeding an event in two pieces gives that event, and the state that feeding it whole leaves.

    By induction over the events, this holds for the whole body without decoding it at each cut.
    """
    body = case.body
    whole = SseDecoder().feed(body, 0, None)
    state = SseDecoder()
    start = 0
    tested: set[bytes] = set()
    for event in whole:
        end = event.end
        after = clone(state)
        assert after.feed(body[start:end], 0, None) == [event]
        # Equal bytes in an equal state but for offsets: keep-alives repeat by the hundred.
        for at in offsets(start, end, every=len(body) <= SMALL and body[start:end] not in tested):
            cut = clone(state)
            assert feed(cut, body[start:at], body[at:end]) == [event]
            assert vars(cut) == vars(after)
        tested.add(body[start:end])
        state = clone(after)
        start = end


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_captured_stream_byte_by_byte_gives_the_same_events(case: Case) -> None:
    whole, alone = SseDecoder(), SseDecoder()
    assert feed(alone, *each_alone(case.body)) == feed(whole, case.body)
    assert (whole.end(), whole.comments, whole.anomalies) == (
        alone.end(),
        alone.comments,
        alone.anomalies,
    )
