from rich.console import Console

from deltatape.render.lines import BOLD, Cell, Segment, cropped, line, plain, styled, table, wrapped

EVIL = "a\x1b[31m\u202e\nb"
SHOWN = "a\\x1b[31m\\u202e\\nb"


def test_nothing_reaches_the_output_unescaped() -> None:
    lines = [line(EVIL, Segment(EVIL, BOLD))]
    assert plain(lines) == f"{SHOWN}{SHOWN}\n"
    assert styled(lines).plain == f"{SHOWN}{SHOWN}"


def test_markup_in_a_text_means_nothing() -> None:
    console = Console(width=80, force_terminal=False)
    with console.capture() as captured:
        console.print(styled([line("[bold]x[/bold] :smile:")]))
    assert captured.get() == "[bold]x[/bold] :smile:\n"


def test_styles_are_kept_for_the_terminal() -> None:
    (span,) = styled([line("a", Segment("b", BOLD))]).spans
    assert (span.start, span.end, span.style) == (1, 2, BOLD)


def test_blanks_at_the_end_of_a_line_are_left_out() -> None:
    assert plain([line("a", "  "), line()]) == "a\n\n"


def test_columns_are_as_wide_as_what_is_shown() -> None:
    rows: list[list[Cell]] = [[Segment("n", BOLD), "name"], ["10", "\x1b"], ["7"]]
    assert plain(table(rows, indent=1, right=(0,))) == "  n  name\n 10  \\x1b\n  7\n"


def test_a_line_that_is_too_long_is_cut_where_it_is_shown() -> None:
    assert cropped(line("ab", "cd"), 4) == line("ab", "cd")
    assert plain([cropped(line("ab", "cde", "f"), 5)]) == "ab...\n"
    assert plain([cropped(line("\x1b\x1b"), 7)]) == "\\x1b...\n"


def test_long_texts_are_broken_with_an_indent() -> None:
    assert plain(wrapped("aaa bbb ccc", 2, width=9)) == "  aaa bbb\n  ccc\n"
    assert plain(wrapped("x" * 12, 2, width=8)) == "  xxxxxx\n  xxxxxx\n"
    assert plain(wrapped("", 2)) == "\n"
