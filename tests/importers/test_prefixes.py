import pytest

from deltatape.importers._prefixes import is_field, json_line, strip_line, without_escapes

DATA = 'data: {"a":1}'


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "    ",
        "2026-11-21 20:36:01 ",
        "2026-11-21T20:36:01.123456789Z ",
        "2026-11-21 20:36:01,123 +0100 ",
        "[2026-11-21T20:36:01+01:00] ",
        "20:36:01.123 ",
        "[20:36:01] ",
        "Nov 21 20:36:01 host app[17]: ",
        "Nov  1 20:36:01 host app: ",
        "INFO ",
        "[debug] ",
        "WARNING: ",
        "LOG ",
        "[chatStream] ",
        "[client]: ",
        "web-1  | ",
        "app/container.1 | 2026-11-21 20:36:01 INFO [stream] ",
        "12:",
        "12|",
        "7\t",
        "< ",
        "> ",
        "-> ",
        "• ",
        "got a line of the stream: ",
        "received chunk=",
        "(unknown words) ",
    ],
)
def test_what_loggers_put_before_a_line_is_found(prefix: str) -> None:
    assert strip_line(prefix + DATA) == (DATA,)


@pytest.mark.parametrize("line", ["event: ping", "id: 7", "retry: 10", ": keep-alive", "data:"])
def test_every_field_is_found_behind_a_known_prefix(line: str) -> None:
    assert is_field(line)
    assert strip_line(line) == (line,)
    assert strip_line(f"app | {line}") == (line,)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (r"""b'data: {"a":1}\n\n'""", ('data: {"a":1}', "", "")),
        (r"""INFO got chunk: b"data: it's\n" """, ("data: it's", "")),
        (r"""'data: {"a":"\'"}'""", ('data: {"a":"\'"}',)),
        (r"""chunk "data: {\"a\":1}\n\n" (17 bytes)""", ('data: {"a":1}', "", "")),
        (r"""{"ts":1,"msg":"data: [DONE]\n\n"}""", ("data: [DONE]", "", "")),
        (r"""2026-11-21 20:36:01 {"level":3,"line":"event: x"}""", ("event: x",)),
        (r"""b'data: \xff'""", ("data: \udcff",)),
        (r"""'data: \d'""", (r"data: \d",)),
    ],
)
def test_quoted_lines_are_unquoted(line: str, expected: tuple[str, ...]) -> None:
    assert strip_line(line) == expected


def test_a_prefix_with_nothing_behind_it_is_a_logged_blank_line() -> None:
    assert strip_line("web-1  | ") == ("",)
    assert strip_line("   ") == ("",)


@pytest.mark.parametrize(
    "line",
    [
        "hello",
        "metadata: {",
        '{"a": 1}',
        '{"a": "x"}',
        "'data: unclosed",
        "b'data: \\x'",
        "INFO request finished",
        "x" * 10_000,
        "[a] " * 1000 + "data",
    ],
)
def test_other_lines_are_no_part_of_a_stream(line: str) -> None:
    assert strip_line(line) is None


def test_control_sequences_of_terminals_are_removed() -> None:
    text = "\x1b[1;32mdata\x1b[0m: \x1b]0;title\x07x\x1b]8;;y\x1b\\z\x1bM"
    assert without_escapes(text) == "data: xz"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('{"a":1}', '{"a":1}'),
        ('10:00 [x] got { "a": {"b": "}"}} ', '{ "a": {"b": "}"}}'),
        ('got b\'{"a":"\\xc3\\xa9"}\\n\'', '{"a":"\u00e9"}'),
        ("got '{\"a\":1}' there", '{"a":1}'),
        ("x {}", "{}"),
        ('x {"a":1} y', None),
        ('x {"a":', None),
        ('x \'{"a":1}', None),
        ("{'a': 1}", None),
        ("x", None),
        ("", None),
    ],
)
def test_the_object_at_the_end_of_a_line_is_found(line: str, found: str | None) -> None:
    assert json_line(line) == found


def test_the_beginning_of_an_object_is_found_if_the_line_is_cut() -> None:
    assert json_line('x {"a":{"b":1}', cut=True) == '{"a":{"b":1}'
    assert json_line('x {"a":1}', cut=True) == '{"a":1}'
    assert json_line('x {"a" 1', cut=True) is None
    assert json_line("x", cut=True) is None
