import pytest

from deltatape.model.stream import Format
from deltatape.suspects.client import CORRECT, Preset, client_of
from deltatape.suspects.presets import PRESETS
from deltatape.suspects.simulation import ClientFraming, ClientRunner, framed
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.suspected import call_fields, deliver, made

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
    runner = ClientRunner(deliver(body))
    assert call_fields(runner.documented().calls) == call_fields(runner.stream.calls)
    before = runner.spent
    runner.outcome(client_of(("key", "one")))
    assert runner.spent - before < 60


@pytest.mark.slow
def test_joined_runs_end_where_another_call_goes_on() -> None:
    steps = [calls(entry(at % 2, arguments="1")) for at in range(2200)]
    runner = ClientRunner(deliver(sse(*steps, FINISH)))
    assert [len(call.arguments) for call in runner.documented().calls] == [1100, 1100]


def test_mistakes_apply_where_the_stream_could_show_them() -> None:
    body = sse(calls(entry(0, "c1", name="get", arguments="{}")), FINISH)
    names = ("framing", "decode")
    imported = ClientRunner(deliver(body))
    cut = ClientRunner(deliver(body[:20], body[20:], taped=True))
    whole = ClientRunner(deliver(body, taped=True))
    told_apart = [
        [
            value
            for axis, value in (
                *((names[0], one) for one in ("reads", "one-per-read", "space", "blank-lines")),
                (names[0], "every-line"),
                (names[1], "reads"),
            )
            if runner.applies(client_of((axis, value)))
        ]
        for runner in (imported, cut, whole)
    ]
    assert told_apart == [[], ["reads", "one-per-read"], ["one-per-read"]]
    assert not imported.applies(client_of(("tags", "rescan")))
    assert not imported.applies(client_of(("source", "added")))
    assert imported.applies(CORRECT)


def test_other_line_ends_and_lines_make_framing_matter() -> None:
    odd = b": x\r\ndata:" + sse(FINISH)[5:]
    runner = ClientRunner(deliver(odd.replace(b"data: {", b"data:{")))
    found = ["blank-lines", "space", "every-line"]
    assert [runner.applies(client_of(("framing", one))) for one in found] == [True] * 3
    letters = 'data: "é"\n\n'.encode()
    cut = ClientRunner(deliver(sse(FINISH), letters[:8], letters[8:], taped=True))
    assert cut.applies(client_of(("decode", "reads")))


def test_very_long_bodies_are_not_framed_again() -> None:
    body = sse(FINISH, {"choices": [], "pad": "x" * 2_000_000})
    assert not ClientRunner(deliver(b": x\n\n" + body)).applies(
        client_of(("framing", "every-line"))
    )


def test_presets_are_known_by_dialect_and_stream() -> None:
    runner = ClientRunner(deliver(sse(FINISH)))
    assert runner.clients_of(_preset("arguments-at-item-added")) == ()
    assert runner.clients_of(_preset("text-only-follow-up")) == ()
    assert len(runner.clients_of(_preset("single-current-call"))) > 1


def test_errors_are_those_that_the_documented_client_does_not_have() -> None:
    cut = calls(entry(0, "c1", name="get", arguments='{"a":'))
    runner = ClientRunner(deliver(sse(cut, FINISH)))
    client = client_of(("key", "one"))
    assert runner.errors(client, runner.outcome(client)) == ()
    assert "Unexpected end of JSON input" in runner.own_errors()


def test_nobody_parses_what_was_cut_unless_the_end_is_not_heeded() -> None:
    cut = calls(entry(0, "c1", name="get", arguments='{"a":'))
    runner = ClientRunner(deliver(sse(cut, done=False)))
    assert [*runner.own_errors()] == []
    client = client_of(("ending", "ignored"))
    assert "Unexpected end of JSON input" in runner.errors(client, runner.outcome(client))


def test_empty_arguments_are_refused_by_some() -> None:
    runner = ClientRunner(deliver(sse(calls(entry(0, "c1", name="get", arguments="")), FINISH)))
    client = client_of(("empty", "parsed"))
    errors = runner.errors(client, runner.outcome(client))
    assert "Unexpected end of JSON input" in errors
    assert "empty arguments" in errors
    assert [*runner.own_errors()] == []
    full = ClientRunner(deliver(sse(calls(entry(0, "c1", name="get", arguments="{}")), FINISH)))
    assert full.errors(client, full.outcome(client)) == ()


def test_clients_that_swallow_errors_have_none() -> None:
    pieces = [calls(entry(0, "c1", name="get", arguments='{"a":')), calls(entry(0, arguments="1}"))]
    runner = ClientRunner(deliver(sse(*pieces, FINISH)))
    noisy, silent = client_of(("arguments", "replace")), ("parse", "swallow")
    assert runner.errors(noisy, runner.outcome(noisy))
    quiet = client_of(("arguments", "replace"), silent)
    assert runner.errors(quiet, runner.outcome(quiet)) == ()
    assert runner.reading(noisy, runner.outcome(noisy)).calls == made(("c1", "get", "1}"))


def test_clients_that_die_at_a_line_make_no_calls() -> None:
    body = b": x\n" + sse(calls(entry(0, "c1", name="get", arguments="{}")), FINISH)
    runner = ClientRunner(deliver(body))
    outcome = runner.outcome(client_of(("framing", "every-line")))
    assert (outcome.calls, outcome.texts[:1]) == ((), (": x",))
    reads = ClientRunner(deliver(body[:60], body[60:], taped=True))
    assert reads.outcome(client_of(("framing", "reads"))).texts


def test_calls_in_the_text_may_be_repeated_or_not() -> None:
    text = choice({"content": '<tool>{"tool_name":"get","arguments":{}}</tool>'})
    runner = ClientRunner(deliver(sse(text, choice({}, "stop"))))
    assert [len(one) for one in runner.references] == [0, 1] * 2
    assert runner.is_documented(())
    client = client_of(("tags", "rescan"))
    assert runner.applies(client)
    assert call_fields(runner.outcome(client).calls) == [(None, "get", "{}")]


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


def test_comments_are_not_json() -> None:
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
