"""A live provider is asked again, and what it says today is taped and compared."""

import asyncio
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.clock import SystemClock
from deltatape.compare.today import Asked
from deltatape.errors import UsageError
from deltatape.gateway.outbound import Outbound
from deltatape.gateway.routes import parse_upstream
from deltatape.model.exchange import Exchange, Masked
from deltatape.record.asking_again import Asking, ask_again
from deltatape.rules.settings import DEFAULTS
from deltatape.store.reader import open_tape
from helpers.chat import sse
from helpers.exchanges import FINISH_TEXT, TEXT
from helpers.taped import taped
from helpers.upstream import SSE_HEAD, Peer, Script, chunk, free_port, provider, run

SAID = sse(TEXT, FINISH_TEXT)
KEY = "sk-fake-000000"


def recorded(number: int = 1, upstream: str = "http://127.0.0.1:1") -> Exchange:
    base = taped([(10, SAID)], number=number, upstream=upstream)
    fields = ((b"Authorization", Masked(length=21, hash="ab12cd34")),)
    return replace(base, request=replace(base.request, headers=fields))


def asking(port: int, output: Path | None = None, deadline_s: float = 10.0) -> Asking:
    return Asking(
        upstream=parse_upstream(f"http://127.0.0.1:{port}"),
        environment={"OPENAI_API_KEY": KEY},
        secrets=(KEY.encode(),),
        outbound=Outbound(),
        mask_key=b"k" * 32,
        clock=SystemClock(),
        deadline_s=deadline_s,
        output=output,
        rules=DEFAULTS,
    )


def ask(
    script: Script, *exchanges: Exchange, how: Callable[[int], Asking] = asking
) -> tuple[tuple[Asked, ...], list[str]]:
    """What became of the exchanges at a provider with this script, and what was said meanwhile."""
    said: list[str] = []

    async def scenario() -> tuple[Asked, ...]:
        async with provider(script) as port:
            return await asyncio.to_thread(ask_again, exchanges, how(port), said.append)

    return run(scenario()), said


async def as_before(peer: Peer) -> None:
    head, _ = await peer.request()
    assert f"Authorization: Bearer {KEY}".encode() in head
    await peer.send(SSE_HEAD + chunk(SAID) + chunk(b""))


def test_each_request_is_asked_once_more_and_compared() -> None:
    asked, said = ask(as_before, recorded(1), recorded(2))
    assert [(one.recorded.number, one.problem) for one in asked] == [(1, ""), (2, "")]
    for one in asked:
        assert one.today is not None
        assert one.today.drifts == ()
        assert one.today.comparison.equal
    assert len(said) == 2
    assert said[0].startswith("asking http://127.0.0.1:")


def test_the_answers_are_kept_on_demand_without_the_key(tmp_path: Path) -> None:
    output = tmp_path / "today.tape"
    asked, _ = ask(as_before, recorded(), how=lambda port: asking(port, output))
    assert asked[0].today is not None
    (kept,) = open_tape(output)
    assert kept.body == SAID
    assert KEY.encode() not in output.read_bytes()
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [output]
    with pytest.raises(UsageError, match="exists already"):
        ask_again((recorded(),), asking(1, output), print)
    with pytest.raises(UsageError, match="No such file"):
        ask_again((recorded(),), asking(1, tmp_path / "no" / "x.tape"), print)


def test_a_tape_is_not_kept_where_nobody_was_asked(tmp_path: Path) -> None:
    output = tmp_path / "today.tape"
    elsewhere = recorded(upstream="https://api.anthropic.com")
    answers = ask_again((elsewhere,), asking(1, output), print)
    assert "set ANTHROPIC_AUTH_TOKEN" in answers[0].problem
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_asked_is_told_beside_the_others() -> None:
    plain = ((b"Content-Type", b"text/plain"),)
    other = taped([(10, b"hello")], target=b"/hello", headers=plain)
    half = replace(recorded(2), request=replace(recorded().request, t_end_ns=None))
    foreign = replace(recorded(3), request=replace(recorded().request, headers=PAGE))
    asked, _ = ask(as_before, other, half, foreign, recorded(4))
    assert asked[0].passed_over == "it is no request to a model that can be read"
    assert asked[1].problem == "not asked: its request is not whole on the tape"
    assert asked[2].problem.startswith("not asked: a web page of 'https://example.com'")
    assert asked[3].today is not None
    assert [one.today for one in asked[:3]] == [None, None, None]


PAGE = ((b"Origin", b"https://example.com"),)


def test_a_provider_that_is_not_there_is_a_problem_and_no_difference() -> None:
    (asked,) = ask_again((recorded(),), asking(free_port()), lambda _: None)
    assert asked.today is None
    assert "no connection" in asked.problem


def test_an_answer_that_takes_too_long_is_a_problem() -> None:
    async def silent(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD)
        await peer.rest()

    (asked,), _ = ask(silent, recorded(), how=lambda port: asking(port, deadline_s=0.2))
    assert (asked.today, asked.problem) == (None, "no whole answer within 0.2 s")


def test_a_provider_that_hangs_up_before_it_answers_is_a_problem() -> None:
    async def leave(peer: Peer) -> None:
        await peer.request()
        peer.reset()

    (asked,), _ = ask(leave, recorded())
    assert asked.today is None
    assert "reset" in asked.problem


def test_an_answer_that_is_cut_is_compared() -> None:
    async def cut(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(SAID[:40]))
        peer.reset()

    (asked,), _ = ask(cut, recorded())
    assert asked.today is not None
    assert "ending" in [drift.aspect for drift in asked.today.drifts]
