import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.redact import body_texts
from deltatape.redact.body_texts import has_single_strings, texts_to_search
from deltatape.redact.json_strings import framed, string_places
from deltatape.redact.search import secrets
from deltatape.secret_text.escaped_text import LayeredView, unescaped
from deltatape.secret_text.search import in_view
from helpers.chat import sse
from helpers.secret_tapes import KEY, STARS, arguments, without_secrets, words

PEM = "-----BEGIN PRIVATE KEY-----\nfake/+=\n-----END PRIVATE KEY-----"
PIECES = [
    KEY, "AKIA" + "FAKE" * 4, "Bearer ", "ghp_" + "fake" * 4, "https://u:fake@h/", PEM, "password=",
    "ey" + "J0eXAifake.ey" + "JzdWIifake", '"', "\\", "\n", "\\u0041", "a", " ", "é", "😀",
    "{", "}", ":", ",", "data: ", "sk", "-fa", "kefake", "*", "\ud83d",
]  # fmt: skip

text = st.lists(st.sampled_from(PIECES), max_size=10).map("".join)
keys = st.sampled_from(["content", "arguments", "index", "delta"]) | text
values = st.recursive(
    text | st.integers(0, 3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(keys, inner, max_size=3)
        | inner.map(json.dumps)
        | inner.map(lambda value: json.dumps(value, ensure_ascii=False))
    ),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (json.dumps({"k": KEY}), json.dumps({"k": STARS})),
        (json.dumps({KEY: 1}), json.dumps({STARS: 1})),
        (
            json.dumps({"a": json.dumps({"b": f"\n{KEY}"})}),
            json.dumps({"a": json.dumps({"b": f"\n{STARS}"})}),
        ),
        (r'{"k":"\u0073k-fakefakefake0000"}', r'{"k":"\u002a' + "*" * 18 + '"}'),
        (r'{"u":"https:\/\/me:fake@x\/"}', r'{"u":"https:\/\/*******@x\/"}'),
        (r'{"k":"\bedrock-api-key-fakefakefake"}', r'{"k":"\bedrock-api-key-fakefakefake"}'),
        (f"plain {KEY}\n", f"plain {STARS}\n"),
        (f"{KEY} and {KEY}", f"{STARS} and {STARS}"),
        ("nothing", "nothing"),
        (r'{"a":"Bearer ' + r"\/" * 16 + '"}', r'{"a":"Bearer ' + r"\/" * 16 + '"}'),
    ],
)  # fmt: skip
def test_a_secret_is_overwritten_whatever_it_is_wrapped_in(before: str, after: str) -> None:
    assert without_secrets(before.encode()) == after.encode()


def test_a_private_key_is_overwritten_line_by_line() -> None:
    for depth in range(3):
        value: object = {"file": f"see {PEM} there"}
        for _ in range(depth):
            value = {"arguments": json.dumps(value)}
        after = without_secrets(json.dumps(value).encode())
        found = json.loads(after)
        for _ in range(depth):
            found = json.loads(found["arguments"])
        lines = ("see ********** ******* ********", "*******", "******** ******* ******** there")
        assert found["file"] == "\n".join(lines)


def test_a_key_that_the_model_streams_in_pieces_is_found() -> None:
    body = sse(words("the key sk-"), words("fakefake"), words("fake0000 is yours"))
    (secret,) = secrets(body)
    assert (secret.kind, secret.certain, secret.value) == ("API key", False, KEY.encode())
    assert len(secret.spans) == 3
    after = without_secrets(body)
    assert b"sk-" not in after
    assert b"0000" not in after
    assert after == sse(words("the key ***"), words("********"), words("******** is yours"))


def test_interleaved_calls_are_kept_apart() -> None:
    body = sse(
        arguments('{"k":"sk-fake', 0), arguments('{"city', 1), arguments("fakefake0000", 0),
        arguments('":1}', 1), arguments('"}', 0),
    )  # fmt: skip
    assert without_secrets(body) == sse(
        arguments('{"k":"*******', 0), arguments('{"city', 1), arguments("************", 0),
        arguments('":1}', 1), arguments('"}', 0),
    )  # fmt: skip


def test_fragments_whose_indexes_are_wrong_are_put_together_all_the_same() -> None:
    body = sse(arguments("sk-fakefak", 0), arguments("efake0000", 1))
    assert without_secrets(body) == sse(arguments("*" * 10, 0), arguments("*" * 9, 1))


@pytest.mark.parametrize("form", ["{}\n{}\n{}\n", "[{},\r\n{},\r\n{}]"])
def test_a_key_that_comes_in_the_lines_or_elements_of_json_is_found(form: str) -> None:
    def body(*texts: str) -> bytes:
        return form.format(*(json.dumps({"message": {"content": text}}) for text in texts)).encode()

    before, after = body("a sk-", "fakefake", "fake0000 b"), body("a ***", "********", "******** b")
    assert without_secrets(before) == after


@pytest.mark.parametrize("form", ["{}\n{}\n{}\n{{", "[{},{},{}]"])
def test_fragments_that_are_indexed_apart_are_put_together_in_lines_and_arrays(form: str) -> None:
    def body(*texts: str) -> bytes:
        parts = [json.dumps({"index": at, "text": text}) for at, text in enumerate(texts)]
        return form.format(*parts).encode()

    assert without_secrets(body("sk-fake", "fakefake", "0000")) == body(
        "*" * 7, "*" * 8, "*" * 4
    )  # fmt: skip


@pytest.mark.parametrize("mark", ["index", "contentBlockIndex", "toolCallId", "jsonPath"])
def test_an_index_behind_a_fragment_keeps_interleaved_texts_apart(mark: str) -> None:
    def body(*texts: str) -> bytes:
        return sse(*({"delta": text, mark: f"i{at % 2}"} for at, text in enumerate(texts)))

    assert without_secrets(body("sk-nope", " a ", "nope" * 3, "b")) == body(
        "*" * 7, " a ", "*" * 12, "b"
    )  # fmt: skip


def test_one_secret_that_several_patterns_find_is_one() -> None:
    assert [s.kind for s in secrets(f"Authorization: Bearer {KEY}".encode())] == ["API key"]
    (found,) = secrets(b"Bearer ey" + b"J0eXAifake.ey" + b"JzdWIifake.fake/more=")
    assert (found.kind, found.spans) == ("JSON Web Token", ((7, 43),))


def test_an_exact_find_names_the_secret() -> None:
    (found,) = secrets(b"API_KEY=gsk_" + b"0" * 52)
    assert (found.kind, found.certain) == ("Groq key", True)
    (found,) = secrets(("password=x1-" + "gsk_" + "0" * 52).encode())
    assert (found.kind, found.certain) == ("Groq key", True)


def test_what_shows_when_something_else_is_gone_is_overwritten_too() -> None:
    token = "ey" + "J0eXAifake.ey" + "JzdWIifake"
    (pem, jwt) = secrets(f"{PEM}{token}".encode())
    assert (pem.kind, jwt.kind) == ("private key", "JSON Web Token")


@pytest.mark.slow
@given(st.lists(values, min_size=1, max_size=4), st.booleans(), st.booleans())
def test_lengths_and_json_survive_and_twice_is_once(
    found: list[object],
    ascii_only: bool,  # noqa: FBT001 - drawn
    stream: bool,  # noqa: FBT001 - drawn
) -> None:
    documents = [json.dumps(value, ensure_ascii=ascii_only) for value in found]
    body = (
        "".join(f"data: {each}\n\n" for each in documents) if stream else f"[{','.join(documents)}]"
    )
    data = body.encode("utf-8", "surrogatepass")
    after = without_secrets(data)
    assert len(after) == len(data)
    assert without_secrets(after) == after
    shown = after.decode("utf-8", "surrogatepass")
    for line in shown.split("\n\n")[:-1] if stream else [shown]:
        json.loads(line.removeprefix("data: "))


@given(text)
def test_any_text_keeps_its_length_and_twice_is_once(found: str) -> None:
    data = found.encode("utf-8", "surrogatepass")
    after = without_secrets(data)
    assert (len(after), without_secrets(after)) == (len(data), after)


@given(st.binary(max_size=60))
def test_any_bytes_are_searched(data: bytes) -> None:
    assert len(without_secrets(data)) == len(data)


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    ["sk-", "ey", "://a:", "://a:b@", "bearer ", "\\u0041", "\\", "[", '{"a":', '"', "\\u005cu005c",
     "-----BEGIN PRIVATE KEY-----MII-", "abc1Q~", "api_key=", "data: {\n\n", '"\\'],
)  # fmt: skip
def test_the_cost_is_linear_for_hostile_text(piece: str) -> None:
    data = (piece * (40_000 // len(piece))).encode()
    assert len(without_secrets(data)) == len(data)


def is_found_slowly(data: bytes) -> bool:
    """Whether a search of the body, and of every joined text, finds something."""
    body = LayeredView(data.decode("latin-1"))
    frame = framed(body)
    by_place: dict[object, list[tuple[int, int]]] = {}
    for start, end in frame.events:
        for place in string_places(frame.view.text, start, end, is_stream=frame.is_stream):
            by_place.setdefault(place.channel, []).append((place.start, place.end))
            if frame.is_stream:
                by_place.setdefault((None, place.trail), []).append((place.start, place.end))
    joined = [
        frame.view.on(unescaped(frame.view.text, slices))
        for slices in by_place.values()
        if len(slices) > 1
    ]
    return any(any(in_view(view)) for view in (body, *joined))


FRAGMENTS = st.sampled_from(
    ["sk", "-fa", "kefake", "fakefa", "0000", "\\n", "\\u0073k-", "%73", "a b", "", "\\\\", "Bear",
     "er ", "YWxh", "c2stZmFrZWZha2VmYWtlMDAwMA", "x", "é", "pass", "word=a1a1a1a1a1a1", "}",
     "authorization", "Basic x1x2x3x4x5x6", '\\"', "\\\\\\\\", '\\": \\"', "password"]
)  # fmt: skip
SHAPES = [
    '{"id":"%s","created":%d,"choices":[{"index":0,"delta":{"content":"%s"}}]}',
    '{"id":"%s","created":%d,"choices":[{"index":1,"delta":{"content":"%s"}}]}',
    '{"type":"delta","role":"%s", "n" : %d ,"text":["%s"]}',
    '{"a":"%s","b":%d,"a":"%s"}',
    '{"index":"%s","b":%d,"a":"%s"',
    '["%s",%d,"%s"]',
    '{"type":"%s","n":[%d,-2.5, 3e4],"t":{"index":"%s"}}',
    '{"a\\"b":"%s","toolCallId":%d,"password":"%s"}',
    '{"type":"%s"%d,"t":"%s"}',
    '{"type":{"a":"%s"}%d,"t":"%s"}',
    '{"t":[["%s",[%d],"x"],"%s"]}',
    '{"t":[["%s",[%d,1,"x"]],"%s"]}',
    "[" * 33 + '"%s",%d,"%s"' + "]" * 33,
    'no JSON %s %d "%s',
]
EVENTS = st.lists(
    st.tuples(st.sampled_from(SHAPES), FRAGMENTS, st.integers(0, 99), FRAGMENTS), max_size=12
)
FRAMINGS = [
    ("data: %s\n\n", ""),
    ("event: x\ndata: %s\n\n", ""),
    ("data:%s\r\n\r\n", ""),
    ("%s\n", ""),
    ("data: %s\n", "\n"),
]


@pytest.mark.slow
@settings(max_examples=500)
@given(EVENTS, st.sampled_from(FRAMINGS), st.sampled_from(["%s", "gap", "same"]))
def test_a_stream_is_searched_as_if_every_text_in_it_were_joined(
    events: list[tuple[str, str, int, str]], framing: tuple[str, str], first: str
) -> None:
    frame, end = framing
    same = events[0][1] if events and first == "same" else None
    lines = [frame % (shape % (same or one, number, two)) for shape, one, number, two in events]
    data = "".join((*lines, end)).encode()
    assert bool(secrets(data)) == is_found_slowly(data)


@pytest.mark.slow
@given(st.one_of(values.map(json.dumps), text))
def test_a_document_is_searched_as_if_every_text_in_it_were_joined(document: str) -> None:
    data = document.encode("utf-8", "surrogatepass")
    assert bool(secrets(data)) == is_found_slowly(data)


@pytest.mark.parametrize("pieces", [["sk-fake", *["fake"] * 8], ["sk-", *["fake"] * 8, "0000"]])
def test_a_key_in_many_events_of_one_shape_is_found(pieces: list[str]) -> None:
    data = sse(*(words(piece) for piece in ["Hello ", *pieces]))
    assert [secret.kind for secret in secrets(data)] == ["API key"]


def test_what_all_events_repeat_is_searched_as_often_as_it_comes() -> None:
    data = sse(*({"id": "sk-fake", "text": "a"} for _ in range(9)))
    assert [secret.kind for secret in secrets(data)] == ["API key"]
    assert secrets(sse(*({"id": r"a\b", "text": "a"} for _ in range(9)))) == ()


@pytest.mark.slow
def test_events_that_are_large_or_never_alike_are_searched_one_by_one() -> None:
    split = [words("ok "), words(KEY[:9]), words(KEY[9:])]
    large = [{**event, **dict.fromkeys(map(str, range(500)), "x")} for event in split * 2]
    assert [secret.kind for secret in secrets(sse(*large))] == ["API key", "API key"]
    unlike = [{f"key{number}": "x"} for number in range(300)]
    assert [secret.kind for secret in secrets(sse(*unlike, *split))] == ["API key"]


@pytest.mark.parametrize(
    "event",
    [
        '{"text":"%s"}',
        '{"text":"%s", "more":"it ends',
        '{"text":"%s", "more":"a"] "b"',
        '{"a\\"b":"it","text":"%s"}',
        "[" * 40 + '"%s"' + "]" * 40,
        '{"type":"a","bytes":[1,-2.5],"index":12,"text":"%s"}',
        '{"text":"%s","path":"C:\\\\","said":"\\"x\\""}',
    ],
)
@pytest.mark.parametrize("framing", ["data: %s\n\n", "data:%s\r\n\r\n", "\xef\xbb\xbfdata%s\n\n"])
def test_a_key_in_unusual_events_is_found(event: str, framing: str) -> None:
    pieces = ["it is ", KEY[:3], KEY[3:9], KEY[9:], " indeed"]
    data = "".join(framing % (event % piece) for piece in pieces).encode("latin-1")
    assert [secret.kind for secret in secrets(data)] == ["API key"]
    assert secrets(data.replace(KEY[9:].encode(), b" ")) == ()


def test_a_document_of_nested_lists_is_searched() -> None:
    document = {"a": [[[1, {"b": [KEY]}], "x"], []], "c": [1, 2]}
    assert [secret.kind for secret in secrets(json.dumps(document).encode())] == ["API key"]
    assert secrets(json.dumps(document).replace(KEY, "x").encode()) == ()


def test_what_events_repeat_is_not_searched_in_each() -> None:
    data = sse(*({"id": "one", "same": 1, "text": f"word {n}"} for n in range(50)))
    texts_to_search(data)
    searched = b"\n".join(texts_to_search(data) or ())
    assert b"word 49" in searched
    assert searched.count(b"same") == 1
    assert len(searched) < len(data) / 2


@pytest.mark.parametrize(
    "shape",
    [
        '{"password":"%s"}',
        '{"a":["authorization","%s"]}',
        '{"a":"%s","Basic ":"%s"}',
        '{"a":["%s","%s"]}',
        '{"api\\u005fkey":"%s"}',
        '{"a":"%s",}',
        '{"a":"%s","a":"%s"}',
        '{"token":%s}',
        '{"a":"x","b":%s}',
    ],
)
@pytest.mark.parametrize("value", ["x1x2x3x4x5x6", "authorization", "Basic x1x2x3x4x5x6", "1"])
def test_a_secret_that_is_partly_in_what_events_repeat_is_found(shape: str, value: str) -> None:
    usual = shape.replace("%s", "0")
    data = "".join(f"data: {usual}\n\n" for _ in range(9))
    data += f"data: {shape.replace('%s', value)}\n\n"
    assert bool(secrets(data.encode())) == is_found_slowly(data.encode())


def test_a_name_and_a_value_in_strings_that_follow_on_each_other_are_found() -> None:
    event = 'data: {"a":"%s","-":"%s"}\n\n'
    usual = "".join(event % (n, n) for n in range(9))
    data = usual + event % ("authorization", "Basic x1x2x3x4x5x6")
    assert not secrets(usual.encode())
    assert bool(secrets(data.encode())) == is_found_slowly(data.encode())


def test_a_large_document_is_searched() -> None:
    document = json.dumps({"text": "It is fine. " * 4000, "more": [KEY]})
    assert [secret.kind for secret in secrets(document.encode())] == ["API key"]
    assert secrets(document.replace(KEY, "x").encode()) == ()


def test_events_with_and_without_a_name_are_told_apart() -> None:
    event = 'data: {"a":"%s"}\n\n'
    for name in ("", "event: sk-fakefakefakefake0000\n", "event: x\n"):
        assert not secrets("".join(event % n for n in range(9)).encode())
        data = "".join(name * (n > 4) + event % n for n in range(9)).encode()
        assert bool(secrets(data)) == is_found_slowly(data) == ("sk-" in name)


def test_a_stream_of_other_lines_is_searched_as_a_whole() -> None:
    event = 'data: {"a":"%s"}\n\n'
    good = "".join(event % n for n in range(9))
    assert secrets(f"{good}id: {KEY}\n\n{good}".encode())
    assert not secrets(f"{good}id: 1\n\n{good}".encode())


def test_memory_of_streams_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_texts, "_SHAPES", 8)
    monkeypatch.setattr(body_texts, "_REMEMBERED", 2)
    for number in range(20):
        events = [{f"{number}{n % 3}": "sk-", "text": KEY[3 + n]} for n in range(len(KEY) - 3)]
        data = sse(*events)
        assert bool(secrets(data)) == is_found_slowly(data)


@pytest.mark.parametrize(
    ("document", "has_single"),
    [
        ('{"a":"x","b":["y",{"c":"z"}]}', True),
        ('{"choices":[{"index":0,"text":"x"}],"n":[1,"y"]}', True),
        ('{"choices":[{"index":0,"text":"x"},{"index":0,"text":"y"}]}', False),
        ('{"choices":[{"index":0,"text":"x"},{"index":1,"text":"y"}]}', False),
        ('{"a":"x","a":"y"}', False),
        ('{"a":"x""y"}', False),
        ('{"a":1"x"}', False),
        ('{"a":"x\n{}\n{}"}', False),
        ('["x","y"]', False),
        ('{"a":"x"', False),
        ('{"a":"' + "x" * 5000 + '","b":"y"}', True),
    ],
)
def test_documents_whose_strings_stand_alone(document: str, *, has_single: bool) -> None:
    assert has_single_strings(document) is has_single


@pytest.mark.parametrize(
    "word", ["c2stZmFrZWZha2VmYWtlMDAwMCAg", "736b2d66616b65206665", KEY, "ab "]
)
def test_what_is_repeated_may_be_encoded(word: str) -> None:
    data = sse(*({"id": word, "n": 1} for _ in range(40)))
    for _ in range(3):
        assert bool(secrets(data)) == is_found_slowly(data)
