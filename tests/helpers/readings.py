"""Tapes that say how their exchange was read."""

from deltatape.diagnose.parsed_record import parsed_as
from deltatape.diagnose.rebuild import analyse
from deltatape.tape.assemble import assemble
from helpers.chat import FINISH, sse
from helpers.compared import call
from helpers.secret_tapes import exchange, numbered, record
from helpers.tapes import HEADER

BODY = sse(*call('{"a":1}'), FINISH)
TOOL = "deltatape 0.0.1"


def parsed_exchange(number: int = 1, body: bytes = BODY, **changes: object) -> list[bytes]:
    """The lines of an exchange and how it was read, with these values instead of the true ones."""
    lines = exchange(number, reads=[body])
    (found,) = assemble(numbered(lines), tape="", header=HEADER)
    value = parsed_as(analyse(found), TOOL).to_json()
    assert isinstance(value, dict)
    return [*lines, record(9100, number, "parsed", {**value, **changes})]
