"""The overview in Chromium: what the list says of each exchange, and how one gets around."""

import asyncio
import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from deltatape.clock import SystemClock
from deltatape.http1.listener import Address
from deltatape.inspector.index import IndexWriter
from deltatape.inspector.indexing import Indexing, Library
from deltatape.inspector.server import Inspector
from deltatape.live.messages import Begin
from deltatape.model.rule_settings import DEFAULTS
from deltatape.store.rule_set import rule_set
from helpers.browser import LOOKS, NARROW, PATIENCE_MS, Seen, opened
from helpers.clients import ROOT
from helpers.hostile import hostile_tape
from helpers.incidents import BROKEN, CUT
from helpers.inspected import TOKEN, Growing, Page, inspected

INCIDENTS = ROOT / "recordings" / "incidents"
expect.set_options(timeout=PATIENCE_MS)


def link(page: Page, at: str = "#/") -> str:
    return f"{page.url}/?token={TOKEN}{at}"


def line(seen: Seen, index: int) -> Locator:
    """The line of the list with this number, from 0."""
    return seen.page.locator(f"#row-{index}")


def count(seen: Seen) -> Locator:
    return seen.page.locator(".count")


@pytest.mark.parametrize(
    ("tape", "says"),
    [
        ("1-index-keyed-accumulation/broken", ("C001", "call-lost-by-app", "app", "lost call")),
        ("2-responses-dead-zone/broken", ("C001", "call-lost-by-app", "app", "lost call")),
        ("3-app-events/broken", ("A001", "event-without-name", "app")),
        ("4-text-tool-calls/broken", ("C009", "app-error-in-history", "app")),
        ("5-agent-loop/broken", ("C001", "call-lost-by-app", "app", "lost call")),
        ("cut-mid-arguments", ("W006", "stream-cut", "transport", "upstream closed")),
        ("stall-before-arguments", ("D001", "stall", "upstream", "silent")),
    ],
)
def test_a_line_says_what_is_wrong_and_whose_fault_it_is(
    browser: Browser, incidents: Page, tape: str, says: tuple[str, ...]
) -> None:
    with opened(browser, link(incidents, f"#/?q={tape}&order=at")) as seen:
        first = line(seen, 0)
        for each in (f"{tape}#1", *says):
            expect(first).to_contain_text(each)
        assert seen.problems == []


def test_a_conversation_is_drawn_with_what_went_wrong_in_it(
    browser: Browser, incidents: Page
) -> None:
    with opened(browser, link(incidents, "#/?tape=5-agent-loop%2Fbroken.tape")) as seen:
        expect(count(seen)).to_have_text("8 of 60 exchanges")
        first, third, last = line(seen, 7), line(seen, 5), line(seen, 0)
        # The latest comes first: its line leads down to the ones before.
        expect(first.locator(".dot.lost-call")).to_have_count(1)
        expect(first.locator(".edge")).to_have_count(1)
        expect(third.locator(".dot.orphan-result")).to_have_count(1)
        expect(third.locator(".edge")).to_have_count(2)
        expect(last.locator(".edge")).to_have_count(1)
        expect(line(seen, 4)).to_contain_text("looporphan result")
        seen.page.get_by_text("What the marks mean").click()
        expect(seen.page.get_by_text("goes on from this reply without one")).to_be_visible()


def test_one_gets_around_by_keys_alone(browser: Browser, incidents: Page) -> None:
    with opened(browser, link(incidents)) as seen:
        page, grid = seen.page, seen.page.get_by_role("grid")
        expect(line(seen, 0)).to_contain_text("5-agent-loop")
        page.keyboard.press("/")
        page.keyboard.type("trip-model")
        expect(count(seen)).to_have_text("14 of 60 exchanges")
        page.keyboard.press("Enter")
        expect(grid).to_be_focused()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("k")
        expect(grid).to_have_attribute("aria-activedescendant", "row-1")
        expect(line(seen, 1)).to_have_attribute("aria-selected", "true")
        page.keyboard.press("End")
        expect(grid).to_have_attribute("aria-activedescendant", "row-13")
        expect(line(seen, 13)).to_be_in_viewport()
        name = line(seen, 13).get_by_role("link").inner_text().replace("\n", "")
        page.keyboard.press("Enter")
        tape, _, number = name.partition("#")
        expect(page).to_have_url(re.compile(f"#/x/{tape.replace('/', '%2F')}.tape/{number}$"))
        page.go_back()
        expect(grid).to_have_attribute("aria-activedescendant", "row-13")
        expect(count(seen)).to_have_text("14 of 60 exchanges")
        page.keyboard.press("f")
        expect(page.get_by_label("Finding", exact=True)).to_be_focused()
        page.keyboard.press("Escape")
        page.keyboard.press("x")
        expect(count(seen)).to_have_text("60 exchanges")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_contain_text("Go to the next exchange")
        assert seen.problems == []


def test_a_link_has_the_filter_and_the_order(browser: Browser, incidents: Page) -> None:
    with opened(browser, link(incidents)) as seen:
        page = seen.page
        page.get_by_label("Finding", exact=True).select_option("C")
        page.get_by_label("Severity", exact=True).select_option("error")
        page.get_by_label("Model", exact=True).select_option("trip-model")
        page.get_by_label("Time", exact=True).select_option("from")
        page.get_by_label("From", exact=True).fill("2026-11-21T00:00:00")
        page.get_by_role("button", name="Duration").click()
        expect(page.get_by_role("columnheader", name="Duration")).to_have_attribute(
            "aria-sort", "descending"
        )
        expect(count(seen)).to_have_text(re.compile(r"^\d of 60 exchanges"))
        there, said = page.url.partition("#")[2], count(seen).inner_text()
        first = line(seen, 0).inner_text()
    with opened(browser, link(incidents, f"#{there}")) as seen:
        expect(count(seen)).to_have_text(said)
        assert line(seen, 0).inner_text() == first
        for name, value in (("Finding", "C"), ("Severity", "error"), ("Model", "trip-model")):
            expect(seen.page.get_by_label(name, exact=True)).to_have_value(value)


def test_a_filter_that_leaves_nothing_says_so(browser: Browser, incidents: Page) -> None:
    with opened(browser, link(incidents, "#/?q=no-such-thing")) as seen:
        expect(seen.page.get_by_text("No exchange matches.")).to_be_visible()
        seen.page.get_by_role("link", name="Clear the filters").click()
        expect(count(seen)).to_have_text("60 exchanges")
        expect(seen.page.get_by_role("searchbox")).to_have_value("")


@pytest.mark.parametrize(("theme", "width"), LOOKS)
def test_everybody_can_use_it(browser: Browser, incidents: Page, theme: str, width: int) -> None:
    with opened(browser, link(incidents), width=width, theme=theme) as seen:
        page = seen.page
        expect(line(seen, 0)).to_contain_text("5-agent-loop")
        assert seen.violations() == []
        assert not seen.overflows()
        if width == NARROW:
            page.get_by_role("button", name="Filters").click()
        page.get_by_label("Time", exact=True).select_option("from")
        page.get_by_label("Severity", exact=True).select_option("error")
        page.locator(".tapes summary").click()
        page.get_by_text("What the marks mean").click()
        expect(page.get_by_role("table")).to_contain_text("stall-before-arguments.tape")
        assert seen.violations() == []
        assert not seen.overflows()
        assert seen.problems == []


def test_without_a_tape_it_says_what_to_run(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "tapes").mkdir()
    with (
        inspected(tmp_path / "tapes", tmp_path / "index") as page,
        opened(browser, link(page)) as seen,
    ):
        expect(seen.page.get_by_text("There is no tape yet.")).to_be_visible()
        expect(seen.page.get_by_text("deltatape record -- python app.py")).to_be_visible()
        (tmp_path / "tapes" / "bad.tape").write_bytes(b"no tape\n")
        expect(seen.page.get_by_text("No tape can be read.")).to_be_visible()
        shutil.copy(BROKEN, tmp_path / "tapes")
        expect(line(seen, 0)).to_contain_text("itinerary-broken#2")
        expect(seen.page.locator(".tapes summary")).to_have_text("2 tapes, 1 that cannot be read")


def test_what_an_attacker_wrote_is_text(browser: Browser, tmp_path: Path) -> None:
    markup = "<img src=x onerror=alert(1)>"
    (tmp_path / "tapes").mkdir()
    hostile_tape(tmp_path / "tapes", f"h\x1b[7m\u202e{markup}.tape")
    with inspected(tmp_path / "tapes", tmp_path / "index") as page:
        page.indexed(1)
        for at in ("#/", "#/trends"):
            with opened(browser, link(page, at)) as seen:
                shown = seen.page.locator("main")
                expect(shown).to_contain_text(re.compile(r"\\u\{1b\}.*model", re.DOTALL))
                titles = [
                    each.get_attribute("title") or "" for each in shown.locator("[title]").all()
                ]
                for text in (shown.inner_text(), *titles):
                    assert not set(text) & set("\x1b\x00\x07\x9b\u202e\u2066")
                assert seen.page.locator("main img").count() == 0
                assert seen.problems == []


def test_a_recording_is_followed(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "tapes").mkdir()
    growing = Growing(BROKEN, tmp_path / "tapes" / "growing.tape")
    growing.begin_now()  # so that its duration grows by the second, not by the minute
    with inspected(tmp_path / "tapes", tmp_path / "index") as page:
        growing.write(growing.until(1, b"response"))
        with opened(browser, link(page)) as seen:
            first = line(seen, 0)
            expect(first).to_contain_text("growing#1")
            expect(first).to_contain_text("running")
            expect(seen.page.locator(".overview-head .recording")).to_contain_text("1 running")
            elapsed = first.locator(".c-duration .number")
            before = elapsed.inner_text()
            expect(elapsed).not_to_have_text(before)
            search = seen.page.get_by_role("searchbox")
            search.fill("growing /v1")
            expect(count(seen)).to_have_text("1 of 1 exchange")
            expect(first).to_contain_text("running")
            search.fill("something else")
            expect(count(seen)).to_have_text("0 of 1 exchange")
            expect(seen.page.get_by_text("No exchange matches.")).to_be_visible()
            seen.page.get_by_role("link", name="Clear the filters").click()
            growing.write(growing.until(2, b"request"))
            expect(first).to_contain_text("growing#2")
            expect(line(seen, 1)).to_contain_text("growing#1")
            expect(line(seen, 1)).to_contain_text("tool_calls")
            growing.write(len(growing.lines))
            growing.file.close()
            expect(line(seen, 0)).to_contain_text("C002")
            expect(seen.page.locator(".overview-head .recording")).to_have_count(0)
            assert seen.problems == []


def test_the_page_goes_on_when_the_server_is_back_and_says_if_it_is_another_one(
    browser: Browser, tmp_path: Path
) -> None:
    tapes = tmp_path / "tapes"
    tapes.mkdir()
    shutil.copy(BROKEN, tapes)
    with inspected(tapes, tmp_path / "index") as page, opened(browser, link(page)) as seen:
        expect(count(seen)).to_have_text("2 exchanges")

        def run(work: Any) -> None:
            asyncio.run_coroutine_threadsafe(work, page.loop).result(60)

        @contextlib.contextmanager
        def started(token: str) -> Iterator[None]:
            """Another server where that of the page was."""
            settings = dict(Begin.of(DEFAULTS).settings)
            begin = {"settings": settings, "folders": [str(tapes)], "only": None}
            again = Inspector(tmp_path / "other-index", begin, token)
            run(again.start(Address("127.0.0.1", int(page.url.rpartition(":")[2]))))
            try:
                yield
            finally:
                run(again.stop())

        run(page.inspector.stop())
        alert = seen.page.get_by_role("alert")
        expect(alert).to_contain_text("deltatape open does not answer.")
        expect(count(seen)).to_have_text("2 exchanges")
        shutil.copy(INCIDENTS / "itinerary-fixed.tape", tapes)
        with started(TOKEN):
            expect(alert).to_have_count(0)
            expect(count(seen)).to_have_text("4 exchanges")
        with started("another-token"):
            expect(alert).to_contain_text("deltatape open refuses this page,")
            expect(alert).to_contain_text("open the link that it printed")
            expect(count(seen)).to_have_text("4 exchanges")
        with started(TOKEN):
            expect(alert).to_have_count(0)
            # It goes away while the page asks for rows: that is told once.
            seen.page.route("**/api/exchanges?*", lambda route: route.abort())
            shutil.copy(CUT, tapes)
            expect(alert).to_contain_text("was it ended?")
        expect(alert).to_contain_text("What is shown is what it told last.")
        with started("another-token"):
            expect(alert).to_contain_text("deltatape open refuses this page,")


MANY = 100_000
START_S = 1_796_000_000
"""Later than the tape."""
_COPIES = f"""
WITH RECURSIVE numbers(number) AS (
  SELECT 3 UNION ALL SELECT number + 1 FROM numbers WHERE number < {MANY}
), copies AS (
  SELECT number, 1 + (number - 1) % 2 AS original, ({START_S} + number) * 1000000000 AS at_ns,
    strftime('%Y-%m-%dT%H:%M:%S.000Z', {START_S} + number, 'unixepoch') AS at,
    number - (number - 3) % 4 AS thread, iif((number - 3) % 4, number - 1, NULL) AS before
  FROM numbers
)
"""  # noqa: S608 - numbers of our own
"""Later exchanges, in conversations of four, each with what the first or the second one was."""
_ROW = (
    "json_set(row, '$.exchange', copies.number, '$.at', at, '$.thread', copies.thread,"
    " '$.before', before)"
)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A server on an index with many rows: those of a tape, many times."""
    folder = tmp_path_factory.mktemp("many")
    tapes, index = folder / "tapes", folder / "index"
    tapes.mkdir()
    shutil.copy(BROKEN, tapes)
    indexing = Indexing(Library(folders=[tapes], only=None), index, DEFAULTS, SystemClock())
    indexing.scan()
    while indexing.busy:
        indexing.work()
    indexing.work()
    indexing.close()
    writer = IndexWriter(index, rule_set(DEFAULTS))
    with writer.changing():
        execute = writer._connection.execute
        same = {
            name: f"exchanges.{name}" for _, name, *_ in execute("PRAGMA table_info(exchanges)")
        }
        moved = {each: f"copies.{each}" for each in ("number", "thread", "at_ns")}
        columns = {**same, **moved, "key": "copies.number", "row": _ROW}
        for table, values, original in (
            ("exchanges", ", ".join(columns.values()), "exchanges.number"),
            ("texts", "number, replace(text, '#' || original, '#' || number)", "exchange"),
            ("codes", "code, number", "exchange"),
        ):
            joined = f"{values} FROM copies JOIN {table} ON {original} = original"
            execute(f"{_COPIES} INSERT INTO {table} SELECT {joined}")
    writer.close()
    with inspected(tapes, index) as page:
        yield page.indexed(1)


_SCROLL = """
async () => {
  const grid = document.getElementById("exchanges");
  const frame = () => new Promise(requestAnimationFrame);
  const most = { lines: 0, anew: 0, moved: 0 };
  const anew = new Set();
  new MutationObserver((changes) => {
    const taken = new Set(changes.flatMap((each) => [...each.removedNodes]));
    for (const { target, addedNodes, type } of changes) {
      const element = target.nodeType === 1 ? target : target.parentElement;
      if ([...addedNodes].some((node) => node.dataset?.index && taken.has(node))) most.moved += 1;
      const filled = [...addedNodes].some((node) => node.matches?.(".c-ending"));
      const renamed = type === "characterData" && element?.closest(".name");
      if (filled || renamed) anew.add(element.closest("[data-index]"));
    }
  }).observe(grid, { subtree: true, childList: true, characterData: true });
  const places = [...Array(60).keys()].map((i) => i * 500);
  for (let i = 0; i <= 60; i++) places.push((grid.scrollHeight * ((i * 37) % 61)) / 60);
  for (const place of places) {
    grid.scrollTop = place;
    await frame();
    most.lines = Math.max(most.lines, document.querySelectorAll("[data-index]").length);
    most.anew = Math.max(most.anew, anew.size);
    anew.clear();
  }
  return most;
}
"""


_IN_ORDER = """
() => {
  const shown = [...document.querySelectorAll("[data-index]")].map((each) => +each.dataset.index);
  return shown.every((index, i) => i === 0 || index > shown[i - 1]);
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, NARROW])
def test_many_exchanges_scroll_with_few_lines_and_requests(
    browser: Browser, many: Page, width: int
) -> None:
    with opened(browser, link(many), width=width) as seen:
        expect(count(seen)).to_have_text("100,000 exchanges")
        expect(line(seen, 0)).to_contain_text("#100000")
        most = seen.page.evaluate(_SCROLL)
        expect(seen.page.locator(".awaited")).to_have_count(0)
        assert most["lines"] < 100
        # Six a frame; a frame of the page may begin in the middle of one of the script.
        assert 3 < most["anew"] <= 12
        assert most["moved"] == 0
        seen.page.wait_for_function(_IN_ORDER)
        asked = [each for each in seen.requests if "/api/exchanges" in each]
        assert len(asked) < 200
        seen.page.get_by_role("grid").press("End")
        expect(line(seen, MANY - 1)).to_be_in_viewport()
        expect(line(seen, MANY - 1)).to_contain_text("#1")
        assert seen.problems == []


def test_rows_that_come_do_not_move_what_one_reads(browser: Browser, tmp_path: Path) -> None:
    tapes = tmp_path / "tapes"
    shutil.copytree(INCIDENTS, tapes, ignore=shutil.ignore_patterns("fixed*", "itinerary*"))
    names = sorted(tapes.rglob("*.tape"))
    with inspected(tapes, tmp_path / "index") as page:
        page.indexed(len(names))
        with opened(browser, link(page)) as seen:
            expect(line(seen, 0)).to_be_visible()
            total = int(count(seen).inner_text().split()[0])
            seen.page.get_by_role("grid").press("End")
            name = line(seen, total - 1).get_by_role("link").inner_text()
            expect(line(seen, total - 1)).to_be_in_viewport()
            shutil.copy(INCIDENTS / "5-agent-loop" / "fixed.tape", tapes / "new.tape")
            expect(count(seen)).to_have_text(f"{total + 2} exchanges")
            last = line(seen, total + 1)
            expect(last.get_by_role("link")).to_have_text(name.replace("\n", ""))
            expect(last).to_be_in_viewport()
            expect(last).to_have_attribute("aria-selected", "true")
