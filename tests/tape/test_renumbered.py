"""Records at another time, under another number."""

import pytest

from deltatape.tape.decode import decode_record
from deltatape.tape.fields import MalformedError
from deltatape.tape.renumbered import front
from helpers.tapes import whole_tape

CLIENT = b'[5,0,"client",{"connection":1,"state":"opened","more":"\\u2028"}]\n'


def test_every_line_put_together_again_is_the_same_line() -> None:
    for line in whole_tape().splitlines(keepends=True)[1:]:
        parts = front(line)
        assert parts.line(parts.t_ns, parts.exchange) == line
        assert parts.code == decode_record(line).payload.code


def test_only_time_and_number_change_whatever_the_spelling() -> None:
    line = b' [ 7 ,\t3 , "future" , {"x": [1.50, "\\/"]} ]\n'
    assert front(line).line(9, 1) == b'[9,1,"future" , {"x": [1.50, "\\/"]} ]\n'
    assert front(b'[-0,0,"idle",{}]').line(2, 0) == b'[2,0,"idle",{}]\n'


def test_a_code_that_is_spelt_otherwise_is_not_known() -> None:
    assert front(b'[0,0,"st\\u006fp",{"reason":"x"}]').code == ""


def test_a_payload_may_say_something_else_and_all_else_stays() -> None:
    parts = front(CLIENT)
    assert parts.payload["connection"] == 1
    moved = parts.saying({**parts.payload, "connection": 7}).line(6, 0)
    assert moved == b'[6,0,"client",{"connection":7,"state":"opened","more":"\\u2028"}]\n'


def test_what_is_no_record_is_refused() -> None:
    with pytest.raises(MalformedError, match="no record"):
        front(b"{}\n")
