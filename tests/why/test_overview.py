from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.model.exchange import Exchange
from deltatape.store.reader import open_tape
from deltatape.why.explain import explain
from deltatape.why.overview import TapeOverview, app_of, overview
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, conversation
from helpers.incidents import BROKEN, CUT, EMPTY, FIXED, STALL


def by(exchange: Exchange, app: bytes) -> Exchange:
    headers = ((b"User-Agent", app),)
    return replace(exchange, request=replace(exchange.request, headers=headers))


def test_a_healthy_tape_is_its_apps_and_models() -> None:
    one, two = conversation(*[(asks(USER), [TEXT, FINISH_TEXT])] * 2)
    seen = overview([by(two, b"curl/8.1"), by(one, b"a/1"), by(one, b"curl/8.1")])
    assert (seen.exchanges, seen.apps, seen.models) == (3, ("curl/8.1", "a/1"), ("m",))


def test_the_worst_finding_of_exchanges_and_conversations_is_shown() -> None:
    seen = overview(open_tape(BROKEN))
    assert (seen.findings, seen.worst and seen.worst.code) == (5, "C002")
    assert seen.models == ("demo-model",)


@pytest.mark.slow
@pytest.mark.parametrize("incident", [BROKEN, CUT, EMPTY, FIXED, STALL])
def test_the_worst_finding_is_the_one_that_decides_the_verdict(incident: Path) -> None:
    tape = open_tape(incident)
    exchanges = sorted(tape, key=lambda exchange: exchange.number)
    worst = overview(tape).worst
    assert (worst.code if worst else None) == explain(exchanges).verdict.code


def test_without_the_others_each_exchange_is_judged_for_itself() -> None:
    whole, alone = overview(open_tape(BROKEN)), overview(open_tape(BROKEN), alone=True)
    assert (whole.exchanges, alone.exchanges) == (2, 2)
    assert whole.worst is not None
    assert whole.worst.code.startswith("C")
    assert alone.findings < whole.findings
    assert alone.worst is None or not alone.worst.code.startswith("C")
    assert overview((), alone=True) == overview(())


def test_an_empty_tape_holds_nothing() -> None:
    nothing = TapeOverview(exchanges=0, apps=(), models=(), findings=0, worst=None)
    assert overview([]) == nothing
    assert overview(conversation(({}, []))).models == ()


@pytest.mark.parametrize(
    ("user_agent", "app"),
    [
        (b"OpenAI/Python 3.54.0", "OpenAI/Python 3.54.0"),
        (b"curl/7.88.1", "curl/7.88.1"),
        (b"google-genai-sdk/1.0 gl-python/3.11", "google-genai-sdk/1.0"),
        (b"Mozilla/5.0 (X11; Linux) AppleWebKit/5 (KHTML) Chrome/120.0 Safari/5", "Chrome/120.0"),
        (b"Mozilla/5.0 (X11) Gecko/1 Firefox/121.0", "Firefox/121.0"),
        (b"Mozilla/5.0 (odd)", "Mozilla/5.0"),
        (b"x" * 100, "x" * 40),
        (b" ", ""),
        (b"(only a comment)", ""),
    ],
)
def test_an_app_is_the_first_product_of_its_user_agent(user_agent: bytes, app: str) -> None:
    assert app_of(user_agent) == app
