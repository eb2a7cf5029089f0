"""When a comparison says that two exchanges are equal."""

from dataclasses import replace

from deltatape.compare import compare_exchanges
from helpers.chat import FINISH
from helpers.compared import analysed, call, chat

WHOLE = chat(*call("{}"), FINISH)


def test_any_difference_makes_two_exchanges_unequal() -> None:
    same = compare_exchanges(WHOLE, WHOLE)
    less = compare_exchanges(WHOLE, chat(*call("{}")))
    lost = compare_exchanges(WHOLE, chat(FINISH))
    framed = compare_exchanges(analysed(b"data: {}\n\n"), analysed(b"data:{}\n\n"))
    assert same.equal
    assert not less.equal
    assert not framed.equal
    for part in (
        replace(same, changes=less.changes),
        replace(same, reply=less.reply),
        replace(same, calls=lost.calls),
        replace(same, framing=framed.framing),
    ):
        assert not part.equal
    assert replace(same, volatile=(("id", 1),)).equal
