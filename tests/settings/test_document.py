import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deltatape.errors import UsageError
from deltatape.settings.document import MAX_BYTES, parse
from deltatape.settings.file import MappingNode, Scalar, SequenceNode


def test_values_are_text_and_know_their_place() -> None:
    table = parse(b"a: no\nlist:\n  - 1:30\n  - 'null'\nnothing:\n", "f.yaml")
    assert isinstance(table, MappingNode)
    assert [str(entry.key) for entry in table.entries.values()] == [
        "f.yaml:1:1",
        "f.yaml:2:1",
        "f.yaml:5:1",
    ]
    a, several, nothing = (entry.value for entry in table.entries.values())
    assert isinstance(a, Scalar)
    assert (a.text, str(a.place), a.absent) == ("no", "f.yaml:1:4", False)
    assert isinstance(several, SequenceNode)
    texts = [(each.text, each.absent) for each in several.items if isinstance(each, Scalar)]
    assert texts == [("1:30", False), ("null", False)]
    assert isinstance(nothing, Scalar)
    assert nothing.absent


@pytest.mark.parametrize("text", ["", "# nothing\n", "~", "---\n...\n", "\ufeff"])
def test_an_empty_document_is_an_absent_value(text: str) -> None:
    value = parse(text.encode(), "f.yaml")
    assert isinstance(value, Scalar)
    assert value.absent


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a: &x 1\nb: 2", "f.yaml:1:4: anchors and aliases are not accepted"),
        (b"a: 1\nb: *x", "f.yaml:2:4: anchors and aliases are not accepted"),
        (b"a: !!python/name:os.system x", "f.yaml:1:4: the tag 'tag:yaml.org,2002:python/name"),
        (b"a: ! x", "f.yaml:1:4: the tag '!' is not accepted"),
        (b"a: 1\nb: 2\na: 3", "f.yaml:3:1: the key 'a' is there twice: see line 1"),
        (b"a: {a: {a: {a: {a: {a: {a: {a: 1}}}}}}}", "f.yaml:1:29: nested deeper than 8"),
        (b"{a: " * 50_000, "f.yaml:1:30: nested deeper than 8 levels"),
        (b"[" * 200_000, "f.yaml:1:9: nested deeper than 8 levels"),
        (b"a:\n\t- x", "f.yaml:2:1: while scanning for the next token, found character"),
        (b"a: b: c", "f.yaml:1:5: mapping values are not allowed here"),
        (b"a\n---\nb", "f.yaml:2:1: expected a single document in the stream, but found"),
        (b"[a]: 1", "f.yaml:1:1: a key is a word"),
        (b"~: 1", "f.yaml:1:1: a key is a word"),
        (b"a: \xc3\xa9\nb: \xff", "f.yaml:2:4: not UTF-8: byte 0xff; UTF-8 is accepted"),
        (b'a: 1\nb: "\x07"', "f.yaml:2:5: character '\\x07' is not accepted in YAML"),
        (b" " * (MAX_BYTES + 1), "f.yaml: more than 262144 bytes"),
        (b"%TAG ! tag:x\n---\na: !y 1", "f.yaml:3:4: the tag 'tag:xy' is not accepted"),
    ],
)
def test_what_is_not_accepted_is_reported_with_its_place(data: bytes, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(data, "f.yaml")
    assert str(raised.value).startswith(message)


def test_a_bomb_of_aliases_is_refused_before_it_grows() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
    with pytest.raises(UsageError, match=r"^f\.yaml:1:5: anchors"):
        parse("\n".join(lines).encode(), "f.yaml")


@pytest.mark.parametrize("escape", [b"\\U00110000", b"\\U99999999"])
def test_an_escape_that_is_no_character_is_refused(escape: bytes) -> None:
    with pytest.raises(UsageError, match=r"^f\.yaml:1:8: this escape stands for no character; "):
        parse(b'a: "b' + escape + b'"', "f.yaml")


@given(st.binary(max_size=60) | st.text(string.printable, max_size=60).map(str.encode))
@example(b"!<tag:x> y")
@example(b"'\\N")
@example(b'"\\U00110000"')
@example(b'"\\U99999999"')
@example(b'"\\xZZ"')
@example(b"%YAML 9.9\n---\n")
@example(b"%YAML 1.1\n%YAML 1.1\n---\n")
@example(b"&a")
@example(b"?")
@example(b"\x00")
@example(b"a: |9\n b")
def test_any_bytes_are_a_value_or_refused_in_one_line(data: bytes) -> None:
    told = "f.yaml:"
    try:
        parse(data, "f.yaml")
    except UsageError as error:
        told = str(error)
    assert told.startswith("f.yaml:")
