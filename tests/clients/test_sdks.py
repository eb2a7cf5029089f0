"""The official SDKs read a stream of each dialect through record and replay as they do directly."""

import asyncio
from pathlib import Path

import pytest

from deltatape.model.exchange import EndReason, Exchange
from deltatape.store.reader import open_tape
from helpers.clients import BEDROCK, CONVERSING, ROOT, Sdk, available, conversing
from helpers.playing import playing
from helpers.program import program
from helpers.recording import recording
from helpers.sample_streams import CALLS
from helpers.upstream import run

RECORDINGS = ROOT / "recordings" / "dialects"


def recorded(sdk: Sdk) -> Exchange:
    """The one exchange on the tape of the SDK's dialect."""
    (exchange,) = open_tape(RECORDINGS / f"{sdk.dialect}.tape")
    return exchange


def holds_the_calls(understood: str) -> bool:
    """Whether both calls are in what an SDK printed, whole or in fragments."""
    wanted = ("Gent", "days", *(name for name, _ in CALLS))
    return all(word in understood for word in wanted)


@pytest.mark.parametrize("sdk", CONVERSING, ids=lambda sdk: sdk.name)
def test_an_sdk_understands_the_same_directly_recorded_and_replayed(
    sdk: Sdk, tmp_path: Path
) -> None:
    available(sdk)
    original = recorded(sdk)

    async def scenario() -> None:
        async with conversing(sdk, original.request.body) as ask:
            async with playing(original, repeat=True) as stage:
                provider = f"http://127.0.0.1:{stage.player.listener.port}"
                direct = await ask(provider)
                async with recording(tmp_path / "alone", provider) as alone:
                    assert await ask(f"http://127.0.0.1:{alone.port}") == direct
                    (taped,) = await alone.ended()
                async with recording(tmp_path / "named", f"{sdk.prefix}={provider}") as named:
                    url = f"http://127.0.0.1:{named.port}/{sdk.prefix}"
                    assert await ask(url) == direct
                    (prefixed,) = await named.ended()
                assert not stage.player.report.missed
            async with playing(taped) as again:
                assert await ask(f"http://127.0.0.1:{again.player.listener.port}") == direct
        assert holds_the_calls(direct)
        for exchange in (taped, prefixed):
            assert wire(exchange) == wire(original)

    run(scenario(), limit_s=90)


def wire(exchange: Exchange) -> tuple[object, ...]:
    """What is on a tape of the provider's side: all but times and the reads it came in."""
    assert exchange.end is not None
    assert exchange.response is not None
    assert exchange.end.reason is EndReason.COMPLETE
    return exchange.body, exchange.response.headers, exchange.request.target


def test_an_sdk_understands_the_same_through_the_programs(tmp_path: Path) -> None:
    available(BEDROCK)
    original = recorded(BEDROCK)
    tape, tapes = RECORDINGS / f"{BEDROCK.dialect}.tape", tmp_path / "tapes"
    listen = ("--listen", "127.0.0.1:0")

    async def understood(*urls: str) -> list[str]:
        async with conversing(BEDROCK, original.request.body) as ask:
            return [await ask(url) for url in urls]

    with program("replay", str(tape), *listen, "--repeat", folder=tmp_path) as provider:
        upstream = ("--upstream", f"bedrock={provider.url}", "--to", str(tapes))
        with program("record", *listen, *upstream, folder=tmp_path) as gateway:
            outcomes = asyncio.run(understood(provider.url, f"{gateway.url}/bedrock"))
            gateway.stop()
    (made,) = tapes.glob("*.tape")
    with program("replay", str(made), *listen, folder=tmp_path) as player:
        outcomes += asyncio.run(understood(player.url))
    assert outcomes == [outcomes[0]] * 3
    assert holds_the_calls(outcomes[0])
    (taped,) = open_tape(made)
    assert wire(taped) == wire(original)
