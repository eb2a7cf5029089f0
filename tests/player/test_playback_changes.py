"""What is played in place of what was recorded, and what a raw client gets of it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from deltatape.errors import UsageError
from deltatape.http1.listener import Address
from deltatape.match.schedule import ReplayTempo
from deltatape.model.exchange import Exchange
from deltatape.player.play_options import PlayOptions
from deltatape.player.playback_changes import ExchangeStaging, refuse_absent
from deltatape.player.player import Player
from deltatape.vary.fault import parse_fault
from deltatape.vary.reads import parse_reads
from helpers.mutated import TWO_EVENTS, pieces, recorded
from helpers.taped import MS, taped
from helpers.upstream import Peer, chunk, connect, post, run

SLOW = ((10, b"data: 1\n\n"), (5010, b"data: 2\n\n"))


def staging(
    *faults: str, reads: str = "recorded", seed: int = 0, factor: float = 1.0
) -> ExchangeStaging:
    return ExchangeStaging(
        [*map(parse_fault, faults)], parse_reads(reads), seed, ReplayTempo(factor=factor)
    )


def test_without_anything_to_do_the_recorded_exchange_is_played() -> None:
    exchange = taped(TWO_EVENTS)
    staged = ExchangeStaging()(0, exchange)
    assert staged.exchange is exchange
    assert (staged.spent, staged.note) == (True, "")


def test_a_fault_strikes_as_often_as_it_says_and_is_told() -> None:
    stage = staging("cut,at=event:1,times=2")
    played = [stage(0, taped(TWO_EVENTS)) for _ in range(3)]
    assert [len(each.exchange.reads) for each in played] == [1, 1, 2]
    assert [each.note for each in played] == ["fault cut,at=event:1,times=2"] * 2 + [""]
    assert [each.spent for each in played] == [False, False, True]


def test_a_fault_strikes_only_the_exchange_it_names_and_where_it_has_a_place() -> None:
    stage = staging("drop,exchange=2,at=event:1", "drop,at=event:7")
    first, second = (stage(at, taped(TWO_EVENTS, number=at + 1)) for at in (0, 1))
    assert len(first.exchange.reads) == 2
    assert len(second.exchange.reads) == 1
    assert first.note == "no place for drop,at=event:7"
    assert second.note == "fault drop,exchange=2,at=event:1, no place for drop,at=event:7"


def test_a_fault_that_struck_nothing_is_known_at_the_end() -> None:
    stage = staging("drop,exchange=2", "drop,at=event:7", "drop,at=event:1")
    stage(0, taped(TWO_EVENTS))
    assert stage.unused_faults() == (
        ("drop,exchange=2", "the exchange that it names was not played"),
        ("drop,at=event:7", "no played response has the position that it names"),
    )
    behind = staging("cut,at=event:1", "drop")
    behind(0, taped(TWO_EVENTS))
    assert behind.unused_faults() == (("drop", "an earlier fault had ended the response"),)
    assert staging("drop").unused_faults() == (("drop", "no exchange was played"),)


def test_an_exchange_that_is_not_there_cannot_be_struck() -> None:
    faults = [*map(parse_fault, ("drop", "drop,exchange=1"))]
    refuse_absent(faults, [taped(TWO_EVENTS)])
    with pytest.raises(UsageError, match="there is no exchange 5 to play; the tape has 1"):
        refuse_absent([*faults, parse_fault("cut,exchange=5")], [taped(TWO_EVENTS)])


def test_faults_add_up_until_one_ends_the_answer() -> None:
    staged = staging("duplicate,at=event:0", "end,at=event:2", "status=500")(0, taped(TWO_EVENTS))
    assert staged.exchange.body == b"data: 1\n\ndata: 1\n\n"
    assert staged.note == "fault duplicate,at=event:0, fault end,at=event:2"


def test_what_a_fault_waits_is_not_sped_up() -> None:
    staged = staging("stall=3s,at=event:1", factor=0.0)(0, taped(SLOW))
    assert [read.t_ns for read in staged.exchange.reads] == [0, 3000 * MS]


def test_a_place_in_time_is_the_same_at_every_speed() -> None:
    for factor in (1.0, 0.0, 7.0):
        staged = staging("cut,at=3s", factor=factor)(0, taped(SLOW))
        assert staged.exchange.body == b"data: 1\n\n"


def test_bodies_are_cut_last() -> None:
    staged = staging("drop,at=event:0", reads="bytes:5")(0, taped(TWO_EVENTS))
    assert pieces(staged.exchange) == [b"data:", b" 2\n\n"]


def test_chance_is_of_the_seed_the_exchange_and_how_often_it_was_asked_for() -> None:
    def cuts(stage: ExchangeStaging, *positions: int) -> list[int]:
        found = [stage(position, recorded("openai-chat")) for position in positions]
        return [len(each.exchange.body) for each in found]

    text = "cut,at=in-text"
    assert cuts(staging(text), 0, 1, 0) == [
        *(first := cuts(staging(text), 0)),
        *cuts(staging(text), 1),
        *cuts(staging(text), 0, 0)[1:],
    ]
    seeds = {cuts(staging(text, seed=seed), 0)[0] for seed in range(8)}
    assert len(seeds) > 1
    assert first[0] in seeds


@contextlib.asynccontextmanager
async def player(
    stage: ExchangeStaging, *exchanges: Exchange
) -> AsyncIterator[tuple[Player, Peer]]:
    made = Player(exchanges, lambda _: None, PlayOptions(stage=stage))
    await made.start(Address("127.0.0.1", 0))
    try:
        yield made, await connect(made.listener.port)
    finally:
        await made.stop()


def test_a_client_that_asks_again_after_an_error_gets_the_answer() -> None:
    async def scenario() -> None:
        stage = staging("status=429,retry-after=1,times=1", reads="every-byte")
        async with player(stage, taped(TWO_EVENTS)) as (made, client):
            await client.send(post())
            first = await client.until(b"}}")
            assert first.startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
            assert b"retry-after: 1\r\n" in first
            await client.send(post())
            again = await client.until(b"0\r\n\r\n")
            assert b"".join(chunk(bytes([byte])) for byte in b"data: 1\n\n") in again
            assert made.report.whole
            assert [one.note for one in made.report.played] == [
                "fault status=429,retry-after=1,times=1",
                "",
            ]

    run(scenario())


@pytest.mark.parametrize(("kind", "how"), [("cut", "eof"), ("reset", "reset")])
def test_a_connection_ends_as_the_fault_says(kind: str, how: str) -> None:
    async def scenario() -> None:
        async with player(staging(f"{kind},at=event:1"), taped(TWO_EVENTS)) as (_, client):
            await client.send(post())
            got, ended = await client.rest()
            assert got.endswith(b"\r\n\r\n" + chunk(b"data: 1\n\n"))
            assert ended == how

    run(scenario())


def test_a_stall_is_silence_on_an_open_connection() -> None:
    async def scenario() -> None:
        async with player(staging("stall,at=event:1", factor=0.0), taped(SLOW)) as (_, client):
            await client.send(post())
            await client.until(chunk(b"data: 1\n\n"))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.until(b"2"), 0.2)

    run(scenario())
