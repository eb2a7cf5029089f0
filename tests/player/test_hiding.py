"""What is told of requests has no credentials in it."""

import json

from deltatape.http1.listener import Address
from deltatape.player.hiding import hider
from deltatape.player.player import Player
from deltatape.player.playing import Missed, Playing
from helpers.playing import Stage
from helpers.taped import taped
from helpers.upstream import post, run

KEY = "sk-proj-fake000000fake000000fake000000"
KNOWN = "Fake.0000-word"


def missed(body: bytes, target: str) -> tuple[str, Missed]:
    """The answer to a request that is not on the tape, and what was told of it."""

    async def scenario() -> tuple[str, Missed]:
        told: list[object] = []
        exchange = taped(body={"a": "my key is not told", "token": "first"})
        playing = Playing(secrets=(KNOWN.encode(),))
        player = Player([exchange], told.append, playing)
        await player.start(Address("127.0.0.1", 0))
        try:
            client = await Stage(player, []).client()
            await client.send(post(body, target, "Connection: close\r\n"))
            got, _ = await client.rest()
        finally:
            await player.stop()
        (one,) = told
        assert isinstance(one, Missed)
        assert player.report.missed == (one,)
        return got.decode(), one

    return run(scenario())


def test_what_looks_like_a_key_or_is_known_to_be_one_is_overwritten() -> None:
    hide = hider([KNOWN.encode()])
    assert hide(f"my key is {KEY}.") == f"my key is {'*' * len(KEY)}."
    assert hide(f"é {KNOWN}") == f"é {'*' * len(KNOWN)}"
    plain = "nothing \ud800 to hide"
    assert hide(plain) is plain


def test_a_body_that_differs_in_a_credential_is_told_without_it() -> None:
    body = {"a": f"my key is {KEY}", "token": KNOWN[:9], KNOWN: {"b": KNOWN, "c": KEY}}
    answer, told = missed(json.dumps(body).encode(), "/v1/chat/completions")
    for text in (answer, repr(told.miss), told.message):
        assert KEY[:10] not in text
        assert KNOWN[:9] not in text
    assert [each.received for each in told.miss.differences] == [
        f'"my key is {"*" * len(KEY)}"',
        "***",
        f'{{"b": "{"*" * len(KNOWN)}", "c": "{"*" * 27}...',
    ]


def test_a_target_is_told_without_tokens_and_keys() -> None:
    for target in (f"/t/{KNOWN[:9]}/v2", f"/s/x/t/{KEY}/v2", f"/v2?{KEY}", f"/v2/{KNOWN}/x"):
        answer, told = missed(b"{}", target)
        for text in (answer, told.message, repr(told.asking.target), told.miss.problem):
            assert KEY[:10] not in text
            assert KNOWN[:9] not in text
            assert "v2" in text
