import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.diagnose.decode import decode
from deltatape.diagnose.rebuild import analyse, analyse_all, dialect_of, rebuild
from deltatape.model.exchange import Exchange
from deltatape.model.reply import CallStatus, Reply
from deltatape.model.stream import Format
from helpers.chat import FINISH, URL, calls, choice, entry, request, sse
from helpers.json_values import json_values

CALL = calls(entry(0, "c1", name="get", arguments=""))


def exchange(body: bytes, *, media: str = "text/event-stream", status: int = 200) -> Exchange:
    return Exchange.from_body(body, content_type=media, url=URL, status=status)


def test_an_analysis_holds_all_that_is_derived_from_an_exchange() -> None:
    given_ = Exchange.from_body(
        sse(CALL, FINISH), content_type="text/event-stream", url=URL, request=request(get={})
    )
    analysis = analyse(given_)
    assert analysis.exchange is given_
    assert (analysis.stream.format, len(analysis.stream.events)) == (Format.SSE, 3)
    assert [tool.name for tool in analysis.request.tools] == ["get"]
    assert analysis.reply.tool_calls[0].status is CallStatus.EMPTY_OK
    assert rebuild(given_) == analysis.reply


def test_the_event_that_no_blank_line_ends_is_not_a_part_of_the_reply() -> None:
    body = sse(choice({"content": "a"}), choice({"content": "b"}), done=False)[:-1]
    analysis = analyse(exchange(body))
    assert analysis.reply.text == "a"
    assert analysis.stream.pending is not None


def test_an_answer_that_is_not_streamed_is_rebuilt_as_well() -> None:
    body = b'{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}'
    reply = rebuild(exchange(body, media="application/json"))
    assert (reply.dialect, reply.text, reply.terminated) == ("openai-chat", "Hi", True)


@pytest.mark.parametrize(
    ("body", "media", "error"),
    [
        (b'{"error":{"message":"bad key"}}', "application/json", "bad key"),
        (b'{"detail":"gone"}', "application/json", "HTTP 502 Bad Gateway: gone"),
        (b'{"code":7}', "application/json", "HTTP 502 Bad Gateway"),
        (b"7", "application/json", "HTTP 502 Bad Gateway"),
        (b"reset \xff\n", "text/plain", "HTTP 502 Bad Gateway: reset \ufffd"),
        (b"<html>", "text/html", "HTTP 502 Bad Gateway"),
        (b"", "", "HTTP 502 Bad Gateway"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/unknown"])
def test_an_http_error_is_the_error_of_the_reply(
    body: bytes, media: str, error: str, path: str
) -> None:
    made = Exchange.from_body(body, content_type=media, url=f"http://127.0.0.1{path}", status=502)
    assert made.response is not None
    reply = rebuild(replace(made, response=replace(made.response, reason=b"Bad Gateway")))
    assert (reply.error, reply.terminated and path == "/v1/chat/completions") == (error, False)


def test_an_error_answer_that_nobody_understands_is_no_odd_event() -> None:
    made = Exchange.from_body(
        b'{"detail":"gone"}', content_type="", url="http://h/v1/chat/completions", status=502
    )
    assert rebuild(made).observations == ()


def test_an_exchange_without_response_has_an_empty_reply() -> None:
    reply = rebuild(replace(exchange(b""), response=None))
    assert (reply.text, reply.error) == ("", None)


def test_an_exchange_of_no_known_dialect_has_an_empty_reply() -> None:
    made = Exchange.from_body(b'data: {"a":1}\n\n', content_type="", url="http://127.0.0.1/x")
    analysis = analyse(made)
    assert (analysis.reply.dialect, analysis.reply.text) == ("unknown", "")
    assert analysis.request.known is False


PIECES = [
    '{"choices":[',
    '{"delta":{"tool_calls":[',
    '{"index":0,',
    '"function":{"arguments":"{}"',
    "}]",
]


@pytest.mark.slow
@given(
    st.lists(st.sampled_from([b"data: ", b"\n\n", *[one.encode() for one in PIECES]])).map(b"".join)
    | st.binary(),
    st.sampled_from([200, 500]),
)
def test_no_body_makes_rebuilding_raise(body: bytes, status: int) -> None:
    assert len(rebuild(exchange(body, status=status)).choices) >= 1


JSON = json_values(
    st.integers(-2, 3) | st.sampled_from(["", "a", "{}", '{"a":']),
    st.sampled_from(["index", "id", "function", "name", "arguments", "delta", "message"])
    | st.sampled_from(["tool_calls", "function_call", "content", "finish_reason", "error"]),
    12,
)
ENTRY = st.fixed_dictionaries(
    {},
    optional={
        "index": st.sampled_from([0, 1, None, "0", "x"]),
        "id": st.sampled_from(["c1", "c2", "", None, 5]),
        "function": st.fixed_dictionaries(
            {},
            optional={
                "name": st.sampled_from(["get", "put", "", None]),
                "arguments": st.sampled_from(["{}", '{"a":', "1}", '{"a":1}', "", None, {"a": 1}]),
            },
        ),
        "custom": JSON,
    },
)


@pytest.mark.slow
@given(st.lists(JSON | st.lists(ENTRY, max_size=3), max_size=8))
def test_no_shape_of_deltas_makes_rebuilding_raise(shapes: list[object]) -> None:
    chunks = [choice({"tool_calls": shape, "function_call": shape}) for shape in shapes]
    chunks += [{"choices": [shape]} for shape in shapes]
    reply = rebuild(exchange(sse(*chunks)))
    for one in reply.choices:
        assert [call.index for call in one.tool_calls] == list(range(len(one.tool_calls)))
    for seen in reply.observations:
        known = {one.index: one for one in reply.choices}
        assert seen.call is None or seen.call < len(known[seen.choice].tool_calls)


def test_several_exchanges_are_analysed_as_each_by_itself() -> None:
    bodies = (sse(CALL, FINISH), b"", b"event: ping\ndata: {}\n\n", b'{"error": "busy"}')
    exchanges = [exchange(body, status=200 + 300 * (not body)) for body in bodies]
    assert analyse_all(exchanges) == [analyse(exchange) for exchange in exchanges]
    assert analyse_all(()) == []


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


PING = {"type": "ping"}
ERROR = {"error": {"message": "x"}}
CHUNK = {"choices": [{"delta": {"content": "a"}}]}


def name(*frames: object, path: str = "/x") -> str | None:
    body = "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames).encode()
    made = Exchange.from_body(body, content_type="text/event-stream", url=f"http://h{path}")
    found = dialect_of(made, decode(made))
    return found.name if found else None


@pytest.mark.parametrize("pings", [0, 3, 4, 5, 19, 20, 21, 500])
def test_a_dialect_may_show_itself_late(pings: int) -> None:
    assert name(*[PING] * pings, CHUNK) == "openai-chat"
    assert name(*[{"a": 1}] * pings) is None


@pytest.mark.parametrize(
    ("frames", "path", "found"),
    [
        ([], "/v1/chat/completions", "openai-chat"),
        ([PING, ERROR], "/v1/chat/completions", "openai-chat"),
        ([{"type": "error", "message": "x"}], "/api/chat", "ollama"),
        ([5], "/api/chat", "ollama"),
        ([{"a": 1}], "/api/chat", None),
        ([PING, {"a": 1}], "/v1/chat/completions", None),
        ([], "/x", None),
    ],
)
def test_the_path_counts_where_the_response_tells_nothing(
    frames: list[object], path: str, found: str | None
) -> None:
    assert name(*frames, path=path) == found


CHAT = "/v1/chat/completions"
OWN = "/api/chat"


def of(body: bytes, media: str, path: str, request: bytes = b"{}", status: int = 200) -> str | None:
    made = Exchange.from_body(
        body, content_type=media, url=f"http://h{path}", request=request, status=status
    )
    found = dialect_of(made, decode(made))
    return found.name if found else None


@pytest.mark.parametrize(
    "body",
    [
        b'{"detail": "no"}',
        b'{"statusCode": 401, "message": "no"}',
        b'{"object": "error", "message": "no", "code": 400}',
        b"no healthy upstream",
        b"",
    ],
)
def test_the_path_of_an_answer_with_the_status_of_an_error_counts(body: bytes) -> None:
    media = "application/json" if body[:1] == b"{" else "text/plain"
    assert of(body, media, CHAT, status=400) == "openai-chat"
    assert of(body, media, OWN, status=503) == "ollama"
    assert of(body, media, "/x", status=503) is None


def test_an_error_in_the_shape_of_another_server_tells_no_dialect() -> None:
    error = {"object": "error", "message": "too long", "type": "BadRequestError"}
    assert name(error, path=CHAT) == "openai-chat"
    assert name({"object": "list", "message": "x"}, path=CHAT) is None
    assert name({"error": None, "result": 1}, path=CHAT) == "openai-chat"
    assert name({"message": "no rights"}, path="/model/m/converse-stream") == "bedrock-converse"


def test_a_strange_document_is_of_the_path_if_a_stream_was_asked_for() -> None:
    body = b'{"code": 1, "msg": "no quota"}'
    streamed = b'{"model": "m", "stream": true}'
    assert of(body, "application/json", CHAT, streamed) == "openai-chat"
    assert of(body, "application/json", CHAT, b'{"model": "m"}') is None
    assert of(body, "application/json", OWN, streamed) is None


def test_plain_text_is_the_applications_where_the_path_may_be() -> None:
    assert of(b"Hello", "text/plain; charset=utf-8", OWN) is None
    assert of(b"Hello", "text/plain", CHAT) == "openai-chat"
    assert of(b"<html>", "text/html", OWN) == "ollama"
    assert of(b"", "text/plain", OWN) == "ollama"


def test_without_a_response_the_path_is_all_there_is() -> None:
    made = Exchange.from_body(b"", content_type="", url="http://h/v1/chat/completions")
    assert dialect_of(made, decode(made)) is not None
