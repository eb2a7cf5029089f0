import json

from deltatape.model.log import LogStream
from deltatape.tape.mask import Masker
from deltatape.tape.payload import ClientState
from deltatape.tape.tape_tap import TapeTap
from helpers.tapes import Lines


def test_the_tape_itself_is_exchange_zero() -> None:
    lines = Lines()
    tap = TapeTap(lines.put)
    tap.client(1, connection=3, state=ClientState.OPENED)
    tap.note(2, "hello")
    tap.idle(3)
    tap.stop(4, "interrupted", None)
    assert lines.text == (
        '[1,0,"client",{"connection":3,"state":"opened"}]\n'
        '[2,0,"note",{"text":"hello"}]\n'
        '[3,0,"idle",{}]\n'
        '[4,0,"stop",{"reason":"interrupted"}]\n'
    )


def test_a_line_of_output_has_the_time_at_which_it_ended() -> None:
    lines = Lines()
    tap = TapeTap(lines.put)
    tap.log(1, LogStream.STDOUT, b"one")
    tap.log(2, LogStream.STDERR, b"\x1b[31merror\xff\nunfi")
    tap.log(3, LogStream.STDOUT, b" line\n")
    tap.log(4, LogStream.STDERR, b"nished")
    tap.log(4, LogStream.BOTH, b"a third\n")
    tap.log_end(5)
    tap.log_end(6)
    assert lines.text == (
        '[2,0,"log",{"stream":"stderr","line":{"b64":"G1szMW1lcnJvcv8="}}]\n'
        '[3,0,"log",{"stream":"stdout","line":"one line"}]\n'
        '[4,0,"log",{"stream":"output","line":"a third"}]\n'
        '[5,0,"log",{"stream":"stderr","line":"unfinished"}]\n'
    )


def test_credentials_are_masked_in_output_and_remarks() -> None:
    lines, masker = Lines(), Masker(b"k")
    masker.learn(b"sk-fake-000000")
    tap = TapeTap(lines.put, masker)
    tap.note(1, "sk-fake-000000?")
    tap.log(2, LogStream.STDOUT, b"x sk-fake-000000\n")
    records = [json.loads(line) for line in lines.all]
    digest = masker.value(b"sk-fake-000000").hash
    assert records == [
        [1, 0, "note", {"text": "**************?"}],
        [2, 0, "masked", {"spans": [[2, 16, digest]]}],
        [2, 0, "log", {"stream": "stdout", "line": "x **************"}],
    ]


def test_a_line_that_did_not_end_is_on_the_tape_before_the_stop() -> None:
    lines = Lines()
    tap = TapeTap(lines.put)
    tap.log(1, LogStream.STDERR, b"unfinished")
    tap.stop(2, "rotated", None)
    assert lines.text == (
        '[2,0,"log",{"stream":"stderr","line":"unfinished"}]\n[2,0,"stop",{"reason":"rotated"}]\n'
    )
