from dataclasses import replace

import pytest

from deltatape.why.addressed import came_from
from helpers.exchanges import TEXT, USER, asks, conversation, pasted

(EXCHANGE,) = conversation((asks(USER), [TEXT]))


@pytest.mark.parametrize("name", [b"x-request-id", b"Request-ID", b"CF-Ray"])
def test_the_upstream_the_request_and_the_hour_are_told(name: bytes) -> None:
    assert EXCHANGE.response
    named = replace(EXCHANGE.response, headers=((name, b"req_1"),))
    assert came_from(replace(EXCHANGE, response=named)) == (
        "https://api.openai.com, request id req_1, tape begun 2026-11-21T20:36:01Z"
    )


def test_what_is_not_known_is_left_out() -> None:
    assert came_from(replace(EXCHANGE, response=None)) == (
        "https://api.openai.com, tape begun 2026-11-21T20:36:01Z"
    )
    bare = pasted(TEXT)
    assert came_from(replace(bare, request=replace(bare.request, upstream=""))) == ""
