from xml.etree import ElementTree as ET

import pytest

from deltatape.ask.chart import Bar, bars, chart_lines, chart_svg
from deltatape.ask.dataset import AnswerColumn
from deltatape.errors import UsageError
from deltatape.render.lines import plain

COLUMNS = [
    AnswerColumn("day", "DATE"),
    AnswerColumn("model", "VARCHAR"),
    AnswerColumn("exchanges", "BIGINT"),
    AnswerColumn("percent", "DECIMAL(9,2)"),
]
ROWS = [("2026-11-20", "gpt-5", 10, 2.5), ("2026-11-21", None, 5, None)]


def test_a_bar_is_labelled_by_what_stands_before_the_numbers() -> None:
    assert bars(COLUMNS, ROWS, "exchanges") == [
        Bar("2026-11-20, gpt-5", 10.0, "10"),
        Bar("2026-11-21", 5.0, "5"),
    ]


def test_rows_without_the_number_have_no_bar() -> None:
    assert bars(COLUMNS, ROWS, "percent") == [Bar("2026-11-20, gpt-5", 2.5, "2.5")]


def test_the_first_number_is_drawn_if_none_is_named() -> None:
    assert [each.value for each in bars(COLUMNS, ROWS, None)] == [10.0, 5.0]


def test_a_bar_without_a_label_says_so() -> None:
    assert bars(COLUMNS[2:3], [(7,)], None) == [Bar("(none)", 7.0, "7")]


@pytest.mark.parametrize(
    ("columns", "value", "why"),
    [
        (COLUMNS, "exchange", "Did you mean 'exchanges'"),
        (COLUMNS, "model", "VARCHAR values, not numbers"),
        (COLUMNS[:2], None, "no column with numbers"),
        (COLUMNS[:2], "day", "no column with numbers"),
    ],
)
def test_what_cannot_be_drawn_is_said(
    columns: list[AnswerColumn], value: str | None, why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        bars(columns, [], value)


def test_the_longest_bar_fills_the_width() -> None:
    drawn = plain(chart_lines("Title", [Bar("aa", 4, "4"), Bar("b", 1, "1")], 20)).splitlines()
    assert drawn == ["Title", "aa ██████████████ 4", "b  ███▌ 1"]


def test_nothing_is_drawn_of_zero_and_less() -> None:
    drawn = plain(chart_lines("Title", [Bar("a", 0, "0"), Bar("b", -1, "-1")], 40))
    assert drawn.splitlines() == ["Title", "a  0", "b  -1"]


def test_an_answer_without_rows_says_so() -> None:
    assert plain(chart_lines("Title", [], 40)).splitlines() == ["Title", "nothing to show"]


def test_an_svg_has_a_bar_and_its_texts_for_each_row() -> None:
    text = chart_svg("A < B?", [Bar("<b>", 4, "4"), Bar("c", 1, "1")])
    root = ET.fromstring(text)  # noqa: S314 - we made it
    space = "{http://www.w3.org/2000/svg}"
    assert root.findtext(f"{space}title") == "A < B?"
    assert [each.text for each in root.iter(f"{space}text")] == ["A < B?", "<b>", "4", "c", "1"]
    widths = [float(each.get("width", "")) for each in root.iter(f"{space}rect")]
    assert widths[1:] == [480.0, 120.0]


def test_an_svg_of_no_rows_is_whole() -> None:
    ET.fromstring(chart_svg("Title", []))  # noqa: S314 - we made it
