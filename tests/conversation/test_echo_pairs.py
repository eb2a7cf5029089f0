"""Real applications: requests that carry what an earlier stream of the corpus delivered.

Each pair is made into a tape and checked as one. Who works is not accused; where something is found
all the same, tests/corpus/echo_pairs.yaml says why it is true.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

import pytest
import yaml

from deltatape.conversation import check_conversation, read_backs
from deltatape.diagnose.check_tape import check_exchanges
from deltatape.diagnose.digest import digest
from deltatape.importers.taping import tape_exchange
from deltatape.model.digest import Digest
from deltatape.model.exchange import EndReason, Exchange, Read, Source
from deltatape.model.finding import Blame, Finding
from deltatape.model.rule_settings import DEFAULTS
from deltatape.tape import encode
from deltatape.tape.assemble import assemble
from deltatape.tape.decode import decode_header, decode_record
from deltatape.tape.mask import Masker
from deltatape.tape.record import Header
from deltatape.tape.tap import ExchangeTap
from helpers.corpus import ROOT, RULES, every_case, is_present, needs_corpus

Pair = tuple[str, str]


# Exchanges of several files on one tape, in memory, as they come out of it again.

_S = 1_000_000_000
_READ = 1000
"""Bytes of a read."""


def taped_together(exchanges: Sequence[Exchange], tape: str = "x.tape") -> Iterator[Exchange]:
    """`exchanges` as a gateway would have taped them, one every ten seconds."""
    header = Header(
        id="01JD3ZQ8T0000000000000PAIR",
        tool="deltatape 0.1.0",
        recorded_at="2026-11-21T20:36:01.000000000Z",
        source=Source.GATEWAY,
    )
    lines = [encode.header_line(header)]

    def put(_: int, line: bytes) -> None:
        lines.append(line)

    masker = Masker(b"k" * 32)
    for number, exchange in enumerate(exchanges, 1):
        _tape(ExchangeTap(number, put, masker), number * 10 * _S, number, exchange)
    records = [(place, decode_record(line)) for place, line in enumerate(lines[1:], 2)]
    return assemble(records, tape=tape, header=decode_header(lines[0]))


def _tape(tap: ExchangeTap, at: int, number: int, exchange: Exchange) -> None:
    assert exchange.response
    starts = range(0, len(exchange.body), _READ)
    timed = replace(
        exchange,
        request=replace(exchange.request, t_ns=at, t_end_ns=at),
        response=replace(exchange.response, t_ns=at),
        reads=tuple(
            Read(at + 1000 * place, exchange.body[start : start + _READ], None, None)
            for place, start in enumerate(starts, 1)
        ),
        notes=(),
    )
    tape_exchange(timed, f"{number:026}", tap)
    tap.end(at + 1000 * len(starts), EndReason.COMPLETE)


@cache
def exchanges() -> Mapping[str, Exchange]:
    """By the names of their cases."""
    return {case.id: case.exchange for case in every_case()}


def echo_pairs() -> list[Pair]:
    """Names of cases of which the second repeats what the first delivered."""
    pairs = json.loads((ROOT / "echo_pairs.json").read_text()) if is_present() else []
    return [(one, other) for one, other in pairs if {one, other} <= exchanges().keys()]


@cache
def reasons() -> Mapping[Pair, Sequence[str]]:
    """The codes of what is found in a pair; the file says why that is true."""
    told = yaml.safe_load((RULES / "echo_pairs.yaml").read_text())
    assert all(one["reason"] for one in told)
    return {(one["first"], one["next"]): one["codes"] for one in told}


def tape(*cases: str) -> Iterator[Exchange]:
    """A tape of these cases, as it comes out of a file."""
    return taped_together([exchanges()[case] for case in cases])


def of_the_client(findings: Sequence[Finding]) -> list[Finding]:
    """Those about what a client made of a reply, or of which it is blamed."""
    return [each for each in findings if each.code.startswith("C") or each.blame is Blame.APP]


def names(found: Digest) -> set[str | None]:
    """The tools whose calls a request repeats."""
    return {call.name for message in found.history for call in message.calls}


@pytest.mark.slow
@needs_corpus
@pytest.mark.parametrize("pair", echo_pairs(), ids=lambda pair: pair[1])
def test_what_is_found_on_a_tape_of_a_pair_is_true(pair: Pair) -> None:
    reported = check_exchanges("pair.tape", tape(*pair), DEFAULTS).reported
    found = of_the_client([each.finding for each in reported])
    assert [each.code for each in found] == list(reasons().get(pair, ())), [
        each.message for each in found
    ]


@pytest.mark.slow
@needs_corpus
@pytest.mark.parametrize("pair", echo_pairs(), ids=lambda pair: pair[1])
def test_the_request_is_known_as_repeating_the_reply(pair: Pair) -> None:
    first, second = map(digest, tape(*pair))
    if names(second).isdisjoint(call.name for call in first.calls):
        assert not read_backs([first, second])  # a short id occurs in a long one by chance
        return
    (read_back,) = read_backs([first, second])
    assert len(read_back.pairs) == len(first.calls) > 0
    assert not read_back.lost


@needs_corpus
def test_every_reason_is_about_a_pair() -> None:
    assert set(echo_pairs()) >= reasons().keys()


@pytest.mark.slow
@needs_corpus
@pytest.mark.parametrize("step", [1, -1])
def test_real_conversations_on_one_tape_are_not_mixed_up(step: int) -> None:
    every = list(exchanges().values())[::step]
    digests = [replace(digest(each), exchange=place) for place, each in enumerate(every, 1)]
    found = [each for each in check_conversation(digests) if each.blame is Blame.APP]
    assert [each.message for each in found] == []
