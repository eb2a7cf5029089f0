from collections.abc import Iterator
from copy import deepcopy

import pytest

from deltatape.model.stream import Event
from deltatape.wire.sse import SseDecoder
from helpers.corpus import Case, cases, needs_corpus
from helpers.splits import each_alone

SMALL = 8 * 1024
"""Bodies up to this size are cut at every byte, larger ones near event borders and by a stride."""
MARGIN = 4
STRIDE = 11
CASES = list(cases("openai-chat"))

pytestmark = needs_corpus


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


@pytest.mark.exhaustive
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


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_captured_stream_byte_by_byte_gives_the_same_events(case: Case) -> None:
    whole, alone = SseDecoder(), SseDecoder()
    assert feed(alone, *each_alone(case.body)) == feed(whole, case.body)
    assert (whole.end(), whole.comments, whole.anomalies) == (
        alone.end(),
        alone.comments,
        alone.anomalies,
    )
