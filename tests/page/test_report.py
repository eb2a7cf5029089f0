"""The report of `why --html`: the picture of a bug, in Chromium, from disk."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, expect

from helpers.browser import LOOKS, PATIENCE_MS, Seen, opened
from helpers.chat import FINISH
from helpers.clients import ROOT
from helpers.console import called
from helpers.hostile import FILE_NAME, hostile_tape
from helpers.rule_recordings.build import (
    GENT,
    ROME,
    chat,
    next_turn,
    weather_call,
    with_results,
)
from helpers.rule_recordings.tape import tape_of

INCIDENTS = ROOT / "recordings" / "incidents"
MAX_BYTES = 2_000_000
CALLS, LATE = 70, 64
"""Parallel calls, and one that is not among the first."""
expect.set_options(timeout=PATIENCE_MS)


class Told(NamedTuple):
    """What a report has to say."""

    verdict: str
    code: str
    where: str
    fix: str


STORIES = {
    "1-index-keyed-accumulation/broken.tape#1": Told(
        "App, proven", "C001", "First mistake: event", "Keep a map from index to call"
    ),
    "1-index-keyed-accumulation/published-fix.tape#3": Told(
        "App, likely", "C009", "Sent by the app", "Treat empty arguments as {}"
    ),
    "1-index-keyed-accumulation/upstream.tape#1": Told(
        "Upstream, proven", "T003", "event 4", "send the request again"
    ),
    "2-responses-dead-zone/broken.tape#1": Told(
        "App, likely", "C001", "tape line 35", "response.output_item.done"
    ),
    "2-responses-dead-zone/upstream.tape#1": Told(
        "Upstream, proven", "S001", "event 12", "treat a body that ends"
    ),
    "3-app-events/broken.tape#1": Told(
        "App, proven", "A001", "event 8", "Collect name and arguments by index"
    ),
    "4-text-tool-calls/broken.tape#1": Told(
        "App, likely", "C009", "tape line 27", "until the whole closing tag is there"
    ),
    "4-text-tool-calls/upstream.tape#1": Told(
        "Model, likely", "T016", "event 14", "Return the parse error"
    ),
    "5-agent-loop/broken.tape#1": Told(
        "App, likely", "C001", "tape line 20", "Append the fragments of one index"
    ),
    "cut-mid-arguments.tape#1": Told(
        "Transport, proven", "W006", "tape line 12", "restarts and crashes"
    ),
    "stall-before-arguments.tape#1": Told("Upstream, likely", "D001", "event 1", "pauses"),
    "itinerary-fixed.tape#1": Told("Healthy", "", "", "None"),
}
BROKEN = "itinerary-broken.tape#1"


def written(tape: str | Path, folder: Path, *options: str) -> Path:
    """Return the report on `TAPE#N`."""
    result = called("why", str(tape), "--short", "--html", "why.html", *options, folder=folder)
    assert result.returncode == 0, result.stderr
    return folder / "why.html"


class Reports:
    """The reports on `TAPE#N` of the incidents, each written once."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        self.browser = browser
        self._folder = folder
        self._paths: dict[str, Path] = {}

    def path(self, name: str) -> Path:
        if name not in self._paths:
            folder = self._folder / str(len(self._paths))
            folder.mkdir()
            self._paths[name] = written(INCIDENTS / name, folder)
        return self._paths[name]

    @contextmanager
    def shown(self, name: str, *, width: int = 1280, theme: str = "light") -> Iterator[Seen]:
        url = self.path(name).as_uri()
        with opened(self.browser, url, width=width, theme=theme) as seen:
            seen.page.wait_for_selector("#verdict")
            yield seen


@pytest.fixture(scope="module")
def reports(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Reports:
    return Reports(browser, tmp_path_factory.mktemp("reports"))


@pytest.mark.parametrize("name", STORIES)
def test_a_report_says_who_what_where_and_what_to_change_and_asks_nobody(
    name: str, reports: Reports
) -> None:
    told = STORIES[name]
    with reports.shown(name) as seen:
        shown = seen.text(".conclusion")
        assert told.verdict in shown
        assert told.code in shown
        assert told.where in shown
        assert told.fix in shown
        assert "deltatape " in seen.text(".conclusion .command code")
        assert [url for url in seen.requests if not url.startswith("file:")] == []
        assert len(seen.requests) == 1
        assert seen.problems == []
        assert Path(name).name in seen.page.title()
    assert reports.path(name).stat().st_size < MAX_BYTES


def test_the_app_s_mistake_is_shown_fragment_by_fragment(reports: Reports) -> None:
    with reports.shown(BROKEN) as seen:
        rows = seen.page.locator(".wire-row")
        assert "here it goes wrong" in rows.nth(3).inner_text()
        suspect, right = seen.page.locator(".client").all()
        assert "single-current-call" in suspect.inner_text()
        assert "wrong now" in suspect.inner_text()
        # The fragment of one call stands in the other, in its own colour.
        assert suspect.locator(".call-card").nth(1).locator("mark.call-0").inner_text() == '{"trip'
        assert right.locator(".call-card").nth(0).locator("mark.call-0").inner_text() == '{"trip'
        sent = seen.page.locator(".sent .call-card")
        assert sent.nth(0).locator("del").inner_text() == '{"trip_id": "LIS-2027"}'
        mixed = sent.nth(1).locator("ins.call-0").all_inner_texts()
        assert "".join(mixed) == '{"trip_id": "LIS-2027"}'


def test_one_steps_through_the_fragments_by_keys(reports: Reports) -> None:
    with reports.shown(BROKEN) as seen:
        press = seen.page.keyboard.press
        present = seen.page.locator(".wire-row[aria-current]")
        press(".")
        assert present.inner_text().startswith("Go to event 4") or "4" in present.inner_text()
        press(",")
        press(",")
        seen.page.wait_for_selector(".client.suspect:has-text('right so far')")
        press("m")
        seen.page.wait_for_selector(".client.suspect:has-text('wrong now')")
        press("r")
        seen.page.wait_for_selector(".wire-row:last-child[aria-current]")
        press("?")
        assert "Step on through the fragments" in seen.text("dialog")


def test_where_nothing_came_is_to_scale(reports: Reports) -> None:
    with reports.shown("stall-before-arguments.tape#1") as seen:
        assert "12.01 s without progress" in seen.drawn(".axis-plot")
        assert "12.01 s of silence after 405 ms" in seen.text(".stream-picture")
        assert "event 1" in seen.text(".around .here")
        waits = seen.page.locator(".around .length")
        boxes = [waits.nth(place).bounding_box() for place in range(3)]
        widths = [box["width"] for box in boxes if box is not None]
        assert widths[2] > 100 * widths[1]


def test_where_the_stream_was_cut_its_arguments_end(reports: Reports) -> None:
    with reports.shown("cut-mid-arguments.tape#1") as seen:
        assert "closed the connection early" in seen.text(".around .cut")
        assert "the arguments end here" in seen.text(".call-card.broken")


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("cut-call-completed-and-run", "Transport, likely; also app, likely"),
        ("call-ended-by-length-run", "Nobody's fault; but also app, likely"),
    ],
)
def test_an_app_that_runs_half_a_call_stands_in_the_verdict_on_the_cut(
    name: str, verdict: str, reports: Reports
) -> None:
    with reports.shown(f"../faults/{name}.tape#1") as seen:
        assert verdict in seen.text("#verdict")
        shown = seen.text(".conclusion")
        assert "never run repaired JSON" in shown
        assert shown.count("the app completed them to") == 1
        assert "exchange #2" in shown
        assert "C016" not in seen.text("section[aria-labelledby=others]")


def test_a_mistake_in_a_request_is_not_looked_for_in_the_response(reports: Reports) -> None:
    with reports.shown("../faults/replies-swapped.tape#3") as seen:
        assert "Sent by the app: this request" in seen.text(".conclusion")
        shown = seen.text(".stream-picture")
        assert "not in this response but in what the app sent in request #3" in shown
        assert "Where it went wrong" not in shown


def test_arguments_that_violate_their_schema_are_not_simply_complete(reports: Reports) -> None:
    with reports.shown("../faults/delta-lost.tape#1") as seen:
        assert "violates the tool's schema" in seen.text(".call-card.broken")


def test_the_time_axis_begins_with_the_exchange_not_with_the_silence_after_it(
    reports: Reports,
) -> None:
    with reports.shown("2-responses-dead-zone/silent.tape#1") as seen:
        seen.page.wait_for_selector("text=889 ms of 33.67 s shown")
        seen.page.get_by_role("button", name="All", exact=True).click()
        seen.page.wait_for_selector("text=33.67 s shown")


@pytest.mark.parametrize(
    "name", [BROKEN, "stall-before-arguments.tape#1", "itinerary-fixed.tape#1"]
)
def test_axe_finds_nothing_wrong_and_narrow_windows_hold_it(name: str, reports: Reports) -> None:
    for theme, width in LOOKS:
        with reports.shown(name, theme=theme, width=width) as seen:
            assert seen.violations() == []
            assert not seen.overflows()


def test_on_paper_everything_is_open_and_nothing_is_a_control(reports: Reports) -> None:
    with reports.shown(BROKEN) as seen:
        seen.page.emulate_media(media="print")
        assert not seen.page.locator(".player").is_visible()
        for control in (".command button", ".tabs", "fieldset.copy"):
            assert not seen.page.locator(control).first.is_visible()
        assert seen.page.locator(".findings details p").first.is_visible()
        assert seen.page.pdf().startswith(b"%PDF-")
        assert seen.page.locator("details[open]").count() == 0  # as it was


def test_hostile_text_is_text(browser: Browser, tmp_path: Path) -> None:
    hostile_tape(tmp_path)
    path = written(FILE_NAME, tmp_path)
    with opened(browser, path.as_uri()) as seen:
        seen.page.wait_for_selector("#verdict")
        shown = seen.page.inner_text("body")
        assert "\u202e" not in shown
        assert "\\u{202e}" in shown
        assert "\\u{1b}" in shown
        assert seen.problems == []
        assert not seen.overflows()


def test_without_a_script_the_explanation_is_there_as_text(reports: Reports) -> None:
    context = reports.browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(reports.path(BROKEN).as_uri())
    assert re.search(r"^VERDICT +app, proven", page.inner_text("noscript"), re.MULTILINE)
    context.close()


def test_of_very_many_calls_those_that_differ_and_the_first_are_drawn_until_one_asks(
    browser: Browser, tmp_path: Path
) -> None:
    events = [each for at in range(CALLS) for each in weather_call(GENT, index=at)]
    sent = [(f"call_fake{at}", "get_weather", GENT if at != LATE else ROME) for at in range(CALLS)]
    exchanges = [chat(*events, FINISH), next_turn(*with_results(*sent))]
    (tmp_path / "many.tape").write_bytes(tape_of(exchanges, 50_101))
    with opened(browser, written("many.tape#1", tmp_path).as_uri()) as seen:
        cards = seen.page.locator(".sent .call-card")
        expect(cards).to_have_count(50)
        expect(seen.page.locator(".sent .call-card.differs")).to_contain_text(f"call {LATE}")
        seen.page.locator(".sent").get_by_role("button", name="20 more calls").click()
        expect(cards).to_have_count(CALLS)
        seen.page.get_by_role("tab", name="Calls and text").click()
        calls = seen.page.locator("section.call")
        expect(calls).to_have_count(50)
        seen.page.get_by_role("button", name="20 more calls").click()
        expect(calls).to_have_count(CALLS)
        assert seen.problems == []
