"""The trends in Chromium: plots, and a table of the same numbers."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from helpers.browser import LOOKS, PATIENCE_MS, opened
from helpers.clients import ROOT
from helpers.datasets import at, write_rows
from helpers.inspected import TOKEN, Page, inspected

INCIDENTS = ROOT / "recordings" / "incidents"
expect.set_options(timeout=PATIENCE_MS)


def link(page: Page, query: str = "") -> str:
    return f"{page.url}/?token={TOKEN}#/trends{query}"


def test_the_table_has_the_numbers_of_the_document(browser: Browser, incidents: Page) -> None:
    trends = incidents.json("/api/trends")["trends"]
    with opened(browser, link(incidents)) as seen:
        lines = seen.page.get_by_role("table").locator("tbody tr")
        expect(lines).to_have_count(len(trends))
        shown = [lines.nth(at).locator("th, td").all_inner_texts() for at in range(len(trends))]
        assert sorted(tuple(each[:6]) for each in shown) == sorted(
            (
                str(each["day"] or "no time"),
                str(each["provider"] or "-"),
                str(each["model"] or "-"),
                *(str(each[name]) for name in ("exchanges", "affected", "findings")),
            )
            for each in trends
        )
        assert sum(int(each[6]) for each in shown) == sum(each["dead_zones"] for each in trends)
        assert seen.problems == []


def test_a_number_leads_to_its_exchanges(browser: Browser, incidents: Page) -> None:
    with opened(browser, link(incidents, "?model=trip-model")) as seen:
        lines = seen.page.get_by_role("table").locator("tbody tr")
        expect(lines).to_have_count(1)
        lines.get_by_role("link", name="C009").click()
        expect(seen.page.locator(".count")).to_have_text("3 of 60 exchanges")
        seen.page.go_back()
        lines.get_by_role("link", name="2026-11-22").click()
        expect(seen.page.locator(".count")).to_have_text("14 of 60 exchanges")


def test_a_bar_leads_to_its_day(browser: Browser, incidents: Page) -> None:
    with opened(browser, link(incidents)) as seen:
        plot = seen.page.locator(".plot").nth(2).locator(".u-over")
        expect(plot).to_be_visible()
        box = plot.bounding_box()
        assert box is not None
        # Two days, a day of room at each side: the first one is at a third.
        plot.hover(position={"x": box["width"] / 3, "y": box["height"] - 3})
        expect(seen.page.locator(".readout").first).to_contain_text("2026-11-21")
        expect(seen.page.locator(".readout").last).to_contain_text("demo-model: 9")
        plot.click(position={"x": box["width"] / 3, "y": box["height"] - 3})
        expect(seen.page.locator(".count")).to_have_text("9 of 60 exchanges")


@pytest.mark.parametrize(("theme", "width"), LOOKS)
@pytest.mark.parametrize("query", ["", "?by=code&per=100"])
def test_everybody_can_use_it(
    browser: Browser, incidents: Page, theme: str, width: int, query: str
) -> None:
    with opened(browser, link(incidents, query), width=width, theme=theme) as seen:
        expect(seen.page.get_by_role("img", name="Dead zones")).to_be_visible()
        assert seen.violations() == []
        assert not seen.overflows()
        assert seen.problems == []


def test_a_filter_that_leaves_nothing_says_so(browser: Browser, incidents: Page) -> None:
    with opened(browser, link(incidents, "?q=no-such-thing")) as seen:
        expect(seen.page.get_by_text("No exchange matches.")).to_be_visible()
        seen.page.get_by_role("link", name="Clear the filters").click()
        expect(seen.page.get_by_role("table")).to_be_visible()


def test_a_dataset_has_trends(browser: Browser, tmp_path: Path) -> None:
    for day in ("2026-11-20", "2026-11-21"):
        asked = {"exchange": 1, "at": at("10:00:00", day), "provider": "openai", "model": "gpt-5"}
        write_rows(tmp_path / "dataset", "exchanges", day, [asked], day=day)
        write_rows(tmp_path / "dataset", "tapes", day, [{"source": day, "exchanges": 1}], day=day)
    with inspected(tmp_path / "dataset", tmp_path / "index", dataset=True) as page:
        page.indexed(2)
        with opened(browser, link(page)) as seen:
            lines = seen.page.get_by_role("table").locator("tbody tr")
            expect(lines).to_have_count(2)
            expect(lines.first).to_contain_text("2026-11-21")
            lines.first.get_by_role("link", name="2026-11-21").click()
            expect(seen.page.locator(".count")).to_have_text("1 of 2 exchanges")
            assert seen.problems == []
