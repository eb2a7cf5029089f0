import hashlib
import json
from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.diagnose.digest import digests_of, in_order
from deltatape.diagnose.rebuild import analyse
from deltatape.model.digest import DeliveredCall, Digest, HistoryMessage
from deltatape.scan.digest_codec import DigestDecoder, DigestEncoder, root_of
from deltatape.store.reader import open_tape
from helpers.exchanges import (
    CALL_MESSAGE,
    CALL_REPLY,
    FINISH_TEXT,
    TEXT,
    USER,
    asks,
    assistant,
    digests,
    result,
    user,
)

RECORDINGS = Path(__file__).parent.parent.parent / "recordings"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
SCHEMAS = st.dictionaries(st.text(), st.dictionaries(st.text(), JSON), max_size=2)


def _prefixes(start: str, history: Sequence[HistoryMessage]) -> tuple[str, ...]:
    links = [repr(each) for each in history]
    return tuple(accumulate([start, *links], lambda so_far, each: _hash(so_far + each)))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@st.composite
def tapes(draw: st.DrawFn) -> list[Digest]:
    """Digests of a tape on which conversations branch, go on, and begin alike."""
    messages = draw(st.lists(st.from_type(HistoryMessage), min_size=1, max_size=4))
    histories = st.lists(st.sampled_from(messages), max_size=6)
    found = []
    for _ in range(draw(st.integers(1, 4))):
        history = tuple(draw(histories))
        found.append(
            draw(
                st.builds(
                    Digest,
                    dialect=st.sampled_from(["one", "other"]),
                    history=st.just(history),
                    prefixes=st.just(_prefixes(draw(st.sampled_from("ab")), history)),
                    schemas=SCHEMAS,
                    calls=st.lists(st.from_type(DeliveredCall), max_size=2).map(tuple),
                    **{
                        each.name: st.from_type(each.type)
                        for each in fields(Digest)
                        if each.name in {"error", "model", "status", "thinking", "torn"}
                        and not isinstance(each.type, str)
                    },
                )
            )
        )
    return found


def _again(made: Sequence[Digest], encoder: DigestEncoder | None = None) -> list[Digest]:
    encoder, decoder = encoder or DigestEncoder(), DigestDecoder()
    return [decoder.decode(encoder.encode(each).digest) for each in made]


@settings(max_examples=30, deadline=None)
@given(tapes())
def test_digests_are_decoded_as_they_were(made: list[Digest]) -> None:
    assert _again(made) == made


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(tapes())
def test_digests_of_one_root_are_decoded_without_the_others(made: list[Digest]) -> None:
    encoder = DigestEncoder()
    encoded = [encoder.encode(each) for each in made]
    for root in {each.root for each in encoded}:
        decoder = DigestDecoder()
        own = [decoder.decode(each.digest) for each in encoded if each.root == root]
        assert own == [each for each in made if root_of(each) == root]


@settings(max_examples=30, deadline=None)
@given(tapes())
def test_a_history_that_was_forgotten_is_written_again(made: list[Digest]) -> None:
    assert _again(made, DigestEncoder(remembered=1)) == made


@pytest.mark.parametrize("folder", ["dialects", "incidents", "rules"])
def test_the_digests_of_all_recordings_survive(folder: str) -> None:
    for path in sorted((RECORDINGS / folder).rglob("*.tape")):
        tape = open_tape(str(path))
        made = in_order(digests_of(analyse(each)) for each in tape.exchanges())
        assert _again(made) == made


def test_a_history_is_written_once() -> None:
    turns, history = [], [USER]
    for place in range(30):
        turns.append((asks(*history), [TEXT, FINISH_TEXT]))
        history += [assistant(text="Hello"), user(f"{place} " + "long " * 200)]
    encoder = DigestEncoder()
    sizes = [len(encoder.encode(each).digest) for each in digests(*turns)]
    assert max(sizes[1:]) < 3000


def test_exchanges_of_a_conversation_have_one_root() -> None:
    made = digests(
        (asks(USER), CALL_REPLY),
        (asks(USER, CALL_MESSAGE, result("c1")), [TEXT, FINISH_TEXT]),
        (asks(user("Something else")), [TEXT, FINISH_TEXT]),
    )
    first, second, other = [DigestEncoder().encode(each).root for each in made]
    assert first == second
    assert other not in {None, first}


def test_what_goes_on_from_a_stored_reply_has_the_root_of_that() -> None:
    (made,) = digests((asks(USER), [TEXT, FINISH_TEXT]))
    stored = replace(made, previous="resp_1")
    assert root_of(stored) == made.prefixes[0]


def test_what_has_no_history_has_no_root() -> None:
    (made,) = digests((asks(), []))
    assert root_of(made) is None


def test_half_a_surrogate_pair_survives() -> None:
    (made,) = digests((asks(USER), [TEXT, FINISH_TEXT]))
    odd = replace(made, content="\ud83d")
    assert _again([odd]) == [odd]


def test_a_digest_of_another_version_is_refused() -> None:
    (made,) = digests((asks(USER), []))
    found = json.loads(DigestEncoder().encode(made).digest)
    with pytest.raises(ValueError, match="another version"):
        DigestDecoder().decode(json.dumps({**found, "v": 2}).encode())


def test_a_digest_without_those_before_it_is_refused() -> None:
    first, second = digests((asks(USER), []), (asks(USER, assistant(text="Hi"), USER), []))
    encoder = DigestEncoder()
    encoder.encode(first)
    with pytest.raises(ValueError, match="was not decoded before"):
        DigestDecoder().decode(encoder.encode(second).digest)
