import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.model.exchange import EndReason, Headers, HeaderValue, MaskedCredential
from deltatape.tape import fields
from deltatape.tape.fields import Fields, MalformedError

MASKED = MaskedCredential(length=51, hash="ab12cd34")
LINES = st.binary(max_size=8).filter(lambda data: not {*b"\r\n\0"} & {*data})
VALUES = LINES | st.builds(
    MaskedCredential,
    length=st.integers(0, 2**63 - 1),
    hash=st.from_regex("[0-9a-f]{8}", fullmatch=True),
)


@given(st.lists(st.tuples(LINES, VALUES), max_size=4).map(tuple))
def test_any_header_fields_come_back(headers: Headers) -> None:
    assert fields.headers_from_json(fields.headers_to_json(headers)) == headers


@pytest.mark.slow
@given(st.lists(VALUES, max_size=4).map(tuple))
def test_any_target_comes_back(target: tuple[HeaderValue, ...]) -> None:
    assert fields.target_from_json(fields.target_to_json(target)) == target


@pytest.mark.parametrize("text", ["a\r\nX: y", "a\n", "\r", "a\0b", {"b64": "DQo="}])
def test_what_would_be_another_line_of_http_is_refused(text: object) -> None:
    for value in ([[text, "v"]], [["x", text]]):
        with pytest.raises(MalformedError, match="no CR, LF or NUL"):
            fields.headers_from_json(value)
    for target in (text, ["/?a=", text]):
        with pytest.raises(MalformedError, match="no CR, LF or NUL"):
            fields.target_from_json(target)
    with pytest.raises(MalformedError, match="no CR, LF or NUL"):
        fields.line_from_json(text)


def test_a_target_is_text_only_when_it_is_ascii() -> None:
    assert fields.target_to_json((b"/a",)) == "/a"
    assert fields.target_to_json(("/é".encode(),)) == {"b64": "L8Op"}
    assert fields.target_to_json((b"/?key=", MASKED)) == [
        "/?key=",
        {"masked": {"length": 51, "hash": "ab12cd34"}},
    ]
    assert fields.target_to_json((MASKED,)) == [{"masked": {"length": 51, "hash": "ab12cd34"}}]


@pytest.mark.parametrize(
    "value",
    [
        None,
        1,
        ["a"],
        {},
        {"b64": 1},
        {"b64": "a"},
        {"b64": "ä"},
        {"b64": "YQ==\n"},
        "\ud800",
        {"masked": {"length": 1}},
    ],
)
def test_what_holds_no_bytes_is_refused(value: object) -> None:
    with pytest.raises(MalformedError):
        fields.value_from_json(value)


@pytest.mark.parametrize(
    ("length", "digest"),
    [
        (-1, "ab12cd34"),
        (True, "ab12cd34"),
        (2**63, "ab12cd34"),
        (1, "AB12CD34"),
        (1, "ab12"),
        (1, "ab12cd34\n"),
    ],
)
def test_a_masked_value_has_a_length_and_eight_hex_digits(length: int, digest: str) -> None:
    with pytest.raises(MalformedError, match="8 hex digits are expected"):
        fields.value_from_json({"masked": {"length": length, "hash": digest}})


@pytest.mark.parametrize("value", [None, "a", [["a"]], ["ab"], [["a", "b", "c"]], [[1, "b"]]])
def test_header_fields_are_a_list_of_pairs(value: object) -> None:
    with pytest.raises(MalformedError):
        fields.headers_from_json(value)


def test_fields_name_the_field_and_what_it_is() -> None:
    read = Fields.read({"a": "x", "b": True, "c": 5})
    assert (read.text("a"), read.flag("b"), read.number("c")) == ("x", True, 5)
    assert (read.text("d", "y"), read.maybe_number("c"), read.maybe_number("d")) == ("y", 5, None)
    for call, problem in (
        (lambda: read.number("b"), '"b" is true: an integer from 0 to 2^63-1 is expected'),
        (lambda: read.maybe_number("a"), '"a" is "x": an integer is expected'),
        (lambda: read.text("c"), '"c" is 5: a string is expected'),
        (lambda: read.flag("c"), '"c" is 5: true or false is expected'),
        (lambda: read.choice("a", EndReason), '"a" is "x": one of complete, '),
    ):
        with pytest.raises(MalformedError) as caught:
            call()
        assert problem in str(caught.value)


def test_text_can_always_be_encoded() -> None:
    assert Fields.read({"a": "x\ud800y"}).text("a") == "x\ufffdy"


def test_a_value_shown_in_a_message_is_short_and_never_raises() -> None:
    deep: object = []
    for _ in range(100_000):
        deep = [deep]
    assert fields.seen(deep) == "a list"
    assert fields.seen("x" * 1000) == '"' + "x" * 59 + "..."
    assert fields.seen("\x1b\u202e") == '"\\u001b\\u202e"'
