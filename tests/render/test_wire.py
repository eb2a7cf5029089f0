from rich.cells import cell_len

from deltatape.diagnose.wire_excerpt import MarkedLine, WireExcerpt
from deltatape.model.finding import Severity
from deltatape.render.lines import plain
from deltatape.render.wire import wire_lines


def shown(*lines: MarkedLine, number: int | None = 12, width: int = 60, more: bool = False) -> str:
    excerpt = WireExcerpt(lines=lines, more=more, evident=True)
    return plain(wire_lines(excerpt, number, Severity.ERROR, width))


def test_carets_stand_under_the_marked_bytes() -> None:
    assert shown(MarkedLine('data: {"a": ', "[1]", "}")) == (
        '     |\n  12 | data: {"a": [1]}\n     |             ^^^\n'
    )


def test_nothing_marked_is_one_caret_and_an_unknown_line_has_an_empty_gutter() -> None:
    assert shown(MarkedLine("data: x", "", ""), number=None) == (
        "   |\n   | data: x\n   |        ^\n"
    )


def test_wide_and_combining_characters_are_measured() -> None:
    _, text, carets = shown(MarkedLine("日本 e\u0301 ", "語", " x")).splitlines()
    assert cell_len(carets) - 2 == cell_len(text[: text.index("語")])
    assert carets.endswith(" ^^")


def test_further_lines_have_no_number() -> None:
    two = (MarkedLine("", "event: a", ""), MarkedLine("", "data: b", ""))
    assert shown(*two, more=True) == (
        "     |\n  12 | event: a\n     | ^^^^^^^^\n     | data: b\n     | ^^^^^^^\n     | ...\n"
    )


def test_what_is_marked_stays_on_a_narrow_page() -> None:
    for before in ("", "b" * 8, "b" * 300, "語" * 150):
        for marked in ("", "m", "m" * 30, "m" * 300, "語" * 160):
            for after in ("", "a", "a" * 300):
                for width in (60, 61, 100):
                    text = shown(MarkedLine(before, marked, after), width=width)
                    lines = text.splitlines()
                    assert max(map(cell_len, lines)) <= width, text
                    start = lines[2].index("^")
                    if marked:
                        at = [n for n in range(len(lines[1])) if cell_len(lines[1][:n]) == start]
                        assert lines[1][at[0]] == marked[0]
                    if len(marked) > 100:
                        assert lines[2].count("^") > width // 2 - 10
