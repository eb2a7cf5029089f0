import pytest

from deltatape.model.stream import Format
from deltatape.suspects.client import CORRECT, Preset, client_of
from deltatape.suspects.presets import PRESETS
from deltatape.suspects.simulation import Bench, ClientFraming, framed
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.suspected import deliver, made, told

BARE = entry(0, arguments="")


def _pieces(count: int) -> list[dict[str, object]]:
    return [calls(entry(0, arguments=f"{at % 10}")) for at in range(count)]


def _preset(name: str) -> Preset:
    return next(one for one in PRESETS if one.name == name)


def test_long_runs_of_pieces_are_joined_and_mean_the_same() -> None:
    opening = calls(entry(0, "c1", name="get", arguments='{"a":"'))
    other = calls(entry(1, "c2", name="put", arguments="[]"), entry(1, arguments=""))
    closing = calls(entry(0, arguments='"}'))
    body = sse(opening, *_pieces(2500), other, *_pieces(3), closing, FINISH)
    bench = Bench(deliver(body))
    assert told(bench.documented().calls) == told(bench.stream.calls)
    before = bench.spent
    bench.outcome(client_of(("key", "one")))
    assert bench.spent - before < 60


def test_joined_runs_end_where_another_call_goes_on() -> None:
    steps = [calls(entry(at % 2, arguments="1")) for at in range(2200)]
    bench = Bench(deliver(sse(*steps, FINISH)))
    assert [len(call.arguments) for call in bench.documented().calls] == [1100, 1100]


def test_mistakes_apply_where_the_stream_could_show_them() -> None:
    body = sse(calls(entry(0, "c1", name="get", arguments="{}")), FINISH)
    names = ("framing", "decode")
    imported = Bench(deliver(body))
    cut = Bench(deliver(body[:20], body[20:], taped=True))
    whole = Bench(deliver(body, taped=True))
    told_apart = [
        [
            value
            for axis, value in (
                *((names[0], one) for one in ("reads", "one-per-read", "space", "blank-lines")),
                (names[0], "every-line"),
                (names[1], "reads"),
            )
            if bench.applies(client_of((axis, value)))
        ]
        for bench in (imported, cut, whole)
    ]
    assert told_apart == [[], ["reads", "one-per-read"], ["one-per-read"]]
    assert not imported.applies(client_of(("tags", "rescan")))
    assert not imported.applies(client_of(("source", "added")))
    assert imported.applies(CORRECT)


def test_other_line_ends_and_lines_make_framing_matter() -> None:
    odd = b": x\r\ndata:" + sse(FINISH)[5:]
    bench = Bench(deliver(odd.replace(b"data: {", b"data:{")))
    found = ["blank-lines", "space", "every-line"]
    assert [bench.applies(client_of(("framing", one))) for one in found] == [True] * 3
    letters = 'data: "é"\n\n'.encode()
    cut = Bench(deliver(sse(FINISH), letters[:8], letters[8:], taped=True))
    assert cut.applies(client_of(("decode", "reads")))


def test_very_long_bodies_are_not_framed_again() -> None:
    body = sse(FINISH, {"choices": [], "pad": "x" * 2_000_000})
    assert not Bench(deliver(b": x\n\n" + body)).applies(client_of(("framing", "every-line")))


def test_presets_are_known_by_dialect_and_stream() -> None:
    bench = Bench(deliver(sse(FINISH)))
    assert bench.known(_preset("arguments-at-item-added")) == ()
    assert bench.known(_preset("text-only-follow-up")) == ()
    assert len(bench.known(_preset("single-current-call"))) > 1


def test_errors_are_those_that_the_documented_client_does_not_have() -> None:
    cut = calls(entry(0, "c1", name="get", arguments='{"a":'))
    bench = Bench(deliver(sse(cut, FINISH)))
    client = client_of(("key", "one"))
    assert bench.errors(client, bench.outcome(client)) == ()
    assert "Unexpected end of JSON input" in bench.own_errors()


def test_nobody_parses_what_was_cut_unless_the_end_is_not_heeded() -> None:
    cut = calls(entry(0, "c1", name="get", arguments='{"a":'))
    bench = Bench(deliver(sse(cut, done=False)))
    assert [*bench.own_errors()] == []
    client = client_of(("ending", "ignored"))
    assert "Unexpected end of JSON input" in bench.errors(client, bench.outcome(client))


def test_empty_arguments_are_refused_by_some() -> None:
    bench = Bench(deliver(sse(calls(entry(0, "c1", name="get", arguments="")), FINISH)))
    client = client_of(("empty", "parsed"))
    errors = bench.errors(client, bench.outcome(client))
    assert "Unexpected end of JSON input" in errors
    assert "empty arguments" in errors
    assert [*bench.own_errors()] == []
    full = Bench(deliver(sse(calls(entry(0, "c1", name="get", arguments="{}")), FINISH)))
    assert full.errors(client, full.outcome(client)) == ()


def test_clients_that_swallow_errors_have_none() -> None:
    pieces = [calls(entry(0, "c1", name="get", arguments='{"a":')), calls(entry(0, arguments="1}"))]
    bench = Bench(deliver(sse(*pieces, FINISH)))
    noisy, silent = client_of(("arguments", "replace")), ("parse", "swallow")
    assert bench.errors(noisy, bench.outcome(noisy))
    quiet = client_of(("arguments", "replace"), silent)
    assert bench.errors(quiet, bench.outcome(quiet)) == ()
    assert bench.made(noisy, bench.outcome(noisy)).calls == made(("c1", "get", "1}"))


def test_clients_that_die_at_a_line_make_no_calls() -> None:
    body = b": x\n" + sse(calls(entry(0, "c1", name="get", arguments="{}")), FINISH)
    bench = Bench(deliver(body))
    outcome = bench.outcome(client_of(("framing", "every-line")))
    assert (outcome.calls, outcome.texts[:1]) == ((), (": x",))
    reads = Bench(deliver(body[:60], body[60:], taped=True))
    assert reads.outcome(client_of(("framing", "reads"))).texts


def test_calls_in_the_text_may_be_repeated_or_not() -> None:
    text = choice({"content": '<tool>{"tool_name":"get","arguments":{}}</tool>'})
    bench = Bench(deliver(sse(text, choice({}, "stop"))))
    assert [len(one) for one in bench.references] == [0, 1] * 2
    assert bench.is_documented(())
    client = client_of(("tags", "rescan"))
    assert bench.applies(client)
    assert told(bench.outcome(client).calls) == [(None, "get", "{}")]


SSE, NDJSON = Format.SSE, Format.NDJSON


def _data(found: ClientFraming) -> list[str]:
    return [event.data for event in found.events]


def _framed(*reads: bytes, framing: str = "standard", decode: str = "stream") -> ClientFraming:
    return framed(reads, SSE, framing, decode)


def test_a_read_that_ends_inside_a_line_spoils_it() -> None:
    reads = (b'data: {"a":1}\n\ndata: {"b', b'":2}\n\n')
    assert _data(_framed(*reads)) == ['{"a":1}', '{"b":2}']
    found = _framed(*reads, framing="reads")
    assert (_data(found), found.texts, found.dies) == (['{"a":1}'], ('{"b',), False)


def test_a_read_may_bring_several_events() -> None:
    reads = (b"data: 1\n\ndata: 2\n\n", b"data: 3\n\n", b": x\n\n")
    assert _data(_framed(*reads, framing="one-per-read")) == ["1", "3"]


def test_events_may_end_with_other_line_ends() -> None:
    crlf = b'event: x\r\ndata: {"a":1}\r\n\r\n'
    assert _data(_framed(crlf)) == ['{"a":1}']
    assert _data(_framed(crlf, framing="blank-lines")) == []
    assert _data(_framed(b"event: x\ndata:1\n\n:\n\n", framing="blank-lines")) == ["1"]


def test_the_space_behind_the_colon_is_optional() -> None:
    assert _data(_framed(b"data:1\ndata: 2\n\n", framing="space")) == ["2"]


def test_comments_are_no_json() -> None:
    body = b": keep-alive\ndata: 1\n\ndata: [DONE]\n\n"
    found = _framed(body, framing="every-line")
    assert (_data(found), found.texts, found.dies) == (["1", "[DONE]"], (": keep-alive",), True)
    assert not _framed(b"data: 1\n\n", framing="every-line").dies


def test_characters_that_are_cut_are_spoilt_by_decoding_each_read() -> None:
    whole = 'data: "aé€𝄞"\n\n'.encode()
    for cut in range(1, len(whole)):
        reads = (whole[:cut], whole[cut:])
        assert _data(_framed(*reads)) == ['"aé€𝄞"']
        assert _framed(*reads).thrown == ()
        found = _framed(*reads, decode="reads")
        assert bool(found.thrown) is ("\ufffd" in "".join(_data(found)))
    assert any("unexpected end of data" in one for one in _framed(whole[:9], decode="reads").thrown)


def test_characters_that_are_cut_are_missing_where_errors_are_ignored() -> None:
    whole = 'data: "aé€𝄞"\n\n'.encode()
    cut = whole.index("€".encode()) + 1
    found = _framed(whole[:cut], whole[cut:], decode="reads-ignore")
    assert (_data(found), found.thrown) == (['"aé𝄞"'], ())


def test_characters_cut_twice_are_decoded_as_a_stream() -> None:
    whole = 'data: "𝄞"\n\n'.encode()
    reads = [bytes([byte]) for byte in whole]
    assert _data(framed(reads, SSE, "standard", "stream")) == ['"𝄞"']
    assert framed(reads, SSE, "reads", "stream").events == ()
    assert framed([b"\x80\x80\x80\x80\x80"], SSE, "reads", "stream").events == ()


@pytest.mark.parametrize(
    ("framing", "events", "texts"),
    [
        ("reads", ['{"a":1}'], ('{"b"', ":2}")),
        ("one-per-read", ['{"a":1}'], (":2}",)),
        ("space", ['{"a":1}', '{"b":2}'], ()),
    ],
)
def test_lines_of_json_are_spoilt_likewise(
    framing: str, events: list[str], texts: tuple[str, ...]
) -> None:
    reads = (b'{"a":1}\n{"b"', b":2}\n")
    found = framed(reads, NDJSON, framing, "stream")
    assert (_data(found), found.texts) == (events, texts)
    assert _data(framed((*reads, b"{}"), NDJSON, "standard", "stream")) == [
        '{"a":1}',
        '{"b":2}',
        "{}",
    ]
