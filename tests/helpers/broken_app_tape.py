"""A tape of an app that changed the arguments of a call, and the requests of a correct app."""

from dataclasses import replace

from deltatape.model.exchange import Exchange
from helpers.chat import FINISH
from helpers.exchanges import (
    FINISH_TEXT,
    TEXT,
    USER,
    asks,
    assistant,
    call,
    conversation,
    result,
)

Json = dict[str, object]

ASKED = asks(USER)
WRONG = asks(USER, assistant(("c1", "get", '{"a":')), result("c1", "no JSON"))
RIGHT = asks(USER, assistant(("c1", "get", '{"a":1}')), result("c1", "one"))


def mistaken(*, refused: bool = False) -> list[Exchange]:
    """A call, and the app's repetition of it; `refused`: the provider rejected that."""
    first, second = conversation((ASKED, [*call(), FINISH]), (WRONG, [TEXT, FINISH_TEXT]))
    if refused:
        assert second.response is not None
        head = replace(second.response, status=400, reason=b"Bad Request")
        second = replace(second, response=head)
    return [first, second]
