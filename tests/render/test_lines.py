import pytest
from rich.console import Console

from deltatape.model.finding import Severity
from deltatape.render.lines import (
    BOLD,
    DIM,
    GOOD,
    STYLES,
    Cell,
    StyledText,
    cropped,
    emphasised,
    hanging,
    line,
    measured,
    plain,
    styled,
    table,
    wrapped,
)

EVIL = "a\x1b[31m\u202e\nb"
SHOWN = "a\\x1b[31m\\u202e\\nb"


def test_nothing_reaches_the_output_unescaped() -> None:
    lines = [line(EVIL, StyledText(EVIL, BOLD))]
    assert plain(lines) == f"{SHOWN}{SHOWN}\n"
    assert styled(lines).plain == f"{SHOWN}{SHOWN}"


def test_markup_in_a_text_means_nothing() -> None:
    console = Console(width=80, force_terminal=False)
    with console.capture() as captured:
        console.print(styled([line("[bold]x[/bold] :smile:")]))
    assert captured.get() == "[bold]x[/bold] :smile:\n"


def test_styles_are_kept_for_the_terminal() -> None:
    (span,) = styled([line("a", StyledText("b", BOLD))]).spans
    assert (span.start, span.end, span.style) == (1, 2, BOLD)


def test_blanks_at_the_end_of_a_line_are_left_out() -> None:
    assert plain([line("a", "  "), line()]) == "a\n\n"


def test_columns_are_as_wide_as_what_is_shown() -> None:
    rows: list[list[Cell]] = [[StyledText("n", BOLD), "name"], ["10", "\x1b"], ["7"]]
    assert plain(table(rows, indent=1, right=(0,))) == "  n  name\n 10  \\x1b\n  7\n"


def test_a_line_that_is_too_long_is_cut_where_it_is_shown() -> None:
    assert cropped(line("ab", "cd"), 4) == line("ab", "cd")
    assert plain([cropped(line("ab", "cde", "f"), 5)]) == "ab...\n"
    assert plain([cropped(line("\x1b\x1b"), 7)]) == "\\x1b...\n"


def test_long_texts_are_broken_with_an_indent() -> None:
    assert plain(wrapped("aaa bbb ccc", 2, width=9)) == "  aaa bbb\n  ccc\n"
    assert plain(wrapped("x" * 12, 2, width=8)) == "  xxxxxx\n  xxxxxx\n"
    assert plain(wrapped("", 2)) == "\n"
    assert plain(hanging("aaa bbb ccc", 7, 2)) == "aaa bbb\n  ccc\n"
    assert plain(hanging("", 7)) == "\n"


def test_no_lines_are_not_text() -> None:
    assert (plain([]), styled([]).plain) == ("", "")


def test_a_line_is_measured_as_it_is_shown() -> None:
    assert measured(line("a", "\x1b")) == 5


def test_columns_that_give_are_cut_the_widest_first_and_then_the_lines() -> None:
    rows: list[list[Cell]] = [["a" * 20, "b" * 12, "c"], ["a", "b"]]
    whole = f"{'a' * 20}  {'b' * 12}  c"
    assert plain(table(rows, width=37)).splitlines()[0] == whole
    assert plain(table(rows, width=30, give={0: 5, 1: 5})).splitlines() == [
        f"{'a' * 10}...  {'b' * 12}  c",
        f"a{' ' * 14}b",
    ]
    assert plain(table(rows, width=26, give={0: 5, 1: 10, 7: 1})).splitlines() == [
        f"{'a' * 7}...  {'b' * 8}...  c",
        f"a{' ' * 11}b",
    ]
    assert plain(table(rows, width=12, give={0: 5})).splitlines()[0] == "aa...  bb..."


def test_characters_that_take_two_columns_are_counted_so() -> None:
    rows = [["東京", "ok"], ["get", "1"]]
    assert plain(table(rows)) == "東京  ok\nget   1\n"
    assert plain(table(rows, right=(0,))) == "東京  ok\n get  1\n"
    wide = [["東京東京東京", "ok"], ["get", "1"]]
    assert plain(table(wide, width=14, give={0: 6})) == "東京東...   ok\nget         1\n"
    assert plain([cropped(line("東京東京", "x"), 8)]) == "東京...\n"
    assert measured(line("東京")) == 4


def test_text_is_wrapped_by_the_columns_that_it_takes() -> None:
    text = "the app repeats 東京の天気 and 大阪の天気予報です instead"
    lines = wrapped(text, 2, width=20)
    assert all(measured(line) <= 20 for line in lines)
    assert "".join(plain(lines).split()) == "".join(text.split())
    assert plain(wrapped("あ", 0, width=1)) == "あ\n"


@pytest.mark.parametrize(
    ("text", "styles"),
    [
        ("#1 POST / 200: finish stop; no findings", [("no findings", GOOD)]),
        ("    error C002 x (app, proven): y", [("error C002", STYLES[Severity.ERROR])]),
        ("#1: warning D001 stall and 2 more", [("warning D001", STYLES[Severity.WARNING])]),
        ("NOT TAPED: your app went past", [("NOT TAPED", STYLES[Severity.ERROR])]),
        ("tape: x.tape", [("tape:", DIM)]),
        ("an error of the app, no findings yet", []),
    ],
)
def test_what_a_recorder_says_is_styled_where_it_matters(
    text: str, styles: list[tuple[str, str]]
) -> None:
    pieces = emphasised(text)
    assert "".join(piece.text for piece in pieces) == text
    assert [(piece.text, piece.style) for piece in pieces if piece.style] == styles


def test_a_word_that_is_longer_than_a_line_is_not_broken() -> None:
    word = "x" * 40
    assert plain(hanging(f"see {word} for more", 20, 2)) == f"see\n  {word}\n  for more\n"
