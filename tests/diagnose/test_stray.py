import pytest

from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import Exchange
from deltatape.model.reply import Reply
from helpers.chat import URL, choice, sse

BARE = b'{\n  "error": {\n    "code": 499,\n    "message": "cancelled"\n  }\n}\n'


def reply_to(*parts: bytes) -> Reply:
    return rebuild(Exchange.from_body(b"".join(parts), content_type="text/event-stream", url=URL))


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n"])
def test_an_error_body_in_a_stream_is_the_error_of_the_reply(end: bytes) -> None:
    head = sse(choice({"content": "a"}), done=False)
    reply = reply_to(head, BARE, end)
    assert (reply.text, reply.error) == ("a", "cancelled")
    (seen,) = [one for one in reply.observations if one.code == "S005"]
    assert seen.event is None
    assert seen.place is not None
    assert seen.place.span == (len(head), len(head) + len(BARE) - 1)
    assert seen.evidence.startswith('{\n  "error"')


def test_an_error_event_before_it_stays_the_error() -> None:
    reply = reply_to(sse({"error": {"message": "first"}}, done=False), BARE)
    assert reply.error == "first"


@pytest.mark.parametrize(
    "stray",
    [
        b"retry-later\n\n",
        b"{\n\n",
        b'{"a":1}\n\n',
        b"{\n\n\n\ndata: x\n\n}\n\n",
        b'{"error":"' + b"x" * 70_000 + b'"}\n\n',
    ],
)
def test_other_lines_that_the_standard_drops_are_no_errors(stray: bytes) -> None:
    assert reply_to(sse(choice({"content": "a"}, "stop"), done=False), stray).error is None


def test_runs_of_lines_are_told_apart_by_what_stands_between_them() -> None:
    assert reply_to(b"junk\n\n", sse(choice({"content": "a"}), done=False), BARE).error
