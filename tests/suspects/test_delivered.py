from dataclasses import replace

from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange
from deltatape.model.stream import Format
from deltatape.suspects import delivered
from deltatape.suspects.mistakes import DialectFamily
from helpers import chat, gemini, messages, responses
from helpers.suspected import call_fields, deliver, follow_up

ONE = chat.calls(chat.entry(0, "c1", name="get", arguments="{}"))


def test_reads_are_those_of_a_wire_or_unknown() -> None:
    body = chat.sse(ONE, chat.FINISH)
    taped = deliver(body[:9], body[9:], taped=True)
    assert (taped.reads, taped.reads_known) == ((body[:9], body[9:]), True)
    imported = deliver(body)
    assert (imported.reads, imported.reads_known) == ((body,), False)


def test_reads_that_are_not_the_body_are_not_told() -> None:
    exchange = Exchange.from_body(b"{}", content_type="application/json", url=chat.URL)
    analysis = analyse(exchange)
    other = replace(analysis.stream, body=b"[]")
    assert delivered(exchange, other, analysis.reply).reads == (b"[]",)
    silent = replace(exchange, response=None, reads=())
    quiet = analyse(silent)
    assert delivered(silent, quiet.stream, quiet.reply).reads == ()


def test_a_request_with_results_makes_a_second_stream() -> None:
    body = chat.sse(ONE, chat.FINISH)
    assert deliver(body, request=follow_up()).follow_up
    assert not deliver(body, request=chat.request()).follow_up


def test_the_end_of_a_stream_is_normal_or_not() -> None:
    assert deliver(chat.sse(ONE, chat.FINISH)).is_whole
    assert not deliver(chat.sse(ONE, chat.choice({}, "length"))).is_whole
    assert not deliver(chat.sse(ONE, done=False)).is_whole


def test_calls_are_the_reference_s() -> None:
    stream = deliver(chat.sse(ONE, chat.FINISH))
    assert call_fields(stream.calls) == [("c1", "get", "{}")]
    assert stream.text_calls == ()
    assert stream.ids == {"c1"}
    assert (stream.format, stream.is_text) == (Format.SSE, True)


def test_dialects_have_families() -> None:
    call = gemini.candidate(gemini.call("get", id="i"), finish="STOP")
    parts = deliver(chat.sse(call, done=False), url=gemini.STREAM)
    blocks = deliver(messages.sse(messages.start(), *messages.END), url=messages.URL)
    items = deliver(responses.sse(responses.created()), url=responses.URL)
    assert [one.family for one in (parts, blocks, items)] == [
        DialectFamily.PARTS,
        DialectFamily.BLOCKS,
        DialectFamily.ITEMS,
    ]
    assert parts.ids == frozenset()
    line = b'{"model":"m","message":{"role":"assistant","content":""},"done":true}\n'
    lines = deliver(line, url="http://127.0.0.1/api/chat", media="application/x-ndjson")
    assert len([*lines.steps(lines.events)]) == 2
    assert [len([*one.steps(one.events)]) for one in (parts, blocks, items)] == [2, 1, 0]
