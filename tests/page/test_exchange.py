"""The page of an exchange in Chromium: one selection through time, text, bytes and findings."""

import contextlib
import itertools
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Locator, Route, expect

from helpers.browser import LOOKS, NARROW, PATIENCE_MS, Seen, opened
from helpers.chat import FINISH, sse
from helpers.clients import ROOT
from helpers.console import called
from helpers.hostile import hostile_tape
from helpers.incidents import BROKEN
from helpers.inspected import TOKEN, Growing, Page, inspected
from helpers.rule_recordings.build import CALL_REPLY, chat, weather_call
from helpers.rule_recordings.tape import ScriptedExchange, tape_of

INCIDENTS = ROOT / "recordings" / "incidents"
INDEX = "1-index-keyed-accumulation/broken.tape"
SOCKET = "openai-realtime.tape"
STALL = "stall-before-arguments.tape"
MARKUP = '<img src=x onerror="document.title=1"><script>document.title=2</script>\u202e'
LONG = 2_000_000
PIECES = 20
PART = "#exchange-part"
expect.set_options(timeout=PATIENCE_MS)


def _late() -> ScriptedExchange:
    """A stream whose client takes the bytes later than they came."""
    stream = chat(*weather_call('{"city":', '"Gent"}'), FINISH)
    return ScriptedExchange(
        reads=stream.reads, request=stream.request, delivered=((0.5, 100), (0.9, 400)), end_s=1.0
    )


def _long() -> ScriptedExchange:
    text = json.dumps({"city": "Gent " * (LONG // 5)})
    size = len(text) // PIECES + 1
    return chat(*weather_call(*(text[at : at + size] for at in range(0, len(text), size))), FINISH)


@pytest.fixture(scope="module")
def tapes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A server on the incidents and on what is hard to show."""
    folder = tmp_path_factory.mktemp("tapes")
    shutil.copytree(INCIDENTS, folder, dirs_exist_ok=True)
    shutil.copy(ROOT / "recordings" / "dialects" / "websocket" / SOCKET, folder)
    hostile_tape(folder, "hostile.tape")
    markup = chat(*weather_call(json.dumps({"city": MARKUP}), name=MARKUP), FINISH)
    scripted = {"markup": markup, "late": _late(), "long": _long()}
    for number, (name, exchange) in enumerate(scripted.items(), 50_001):
        (folder / f"{name}.tape").write_bytes(tape_of(exchange, number))
    (folder / "reply.txt").write_bytes(sse(*CALL_REPLY))
    imported = called("import", "reply.txt", "-o", "pasted.tape", folder=folder)
    assert imported.returncode == 0, imported.stderr
    with inspected(folder, tmp_path_factory.mktemp("index") / "index") as page:
        yield page.indexed(len([*folder.rglob("*.tape")]))


def link(page: Page, tape: str, number: int, query: str = "") -> str:
    where = f"#/x/{quote(tape, safe='')}/{number}"
    return f"{page.url}/?token={TOKEN}{where}{'?' if query else ''}{query}"


@contextlib.contextmanager
def shown(
    browser: Browser,
    page: Page,
    tape: str,
    query: str = "",
    *,
    number: int = 1,
    width: int = 1280,
    theme: str = "light",
) -> Iterator[Seen]:
    url = link(page, tape, number, query)
    with opened(browser, url, width=width, theme=theme) as seen:
        expect(seen.page.locator(".axis svg")).to_be_visible()
        yield seen
        assert seen.problems == []


def part(seen: Seen, name: str) -> None:
    """Open a part of the exchange, and wait until it has what it shows."""
    tab = seen.page.get_by_role("tab", name=name)
    tab.click()
    expect(tab).to_have_attribute("aria-selected", "true")
    expect(seen.page.locator(f"{PART} progress")).to_have_count(0)


def origin(seen: Seen) -> Locator:
    """The line that says where what is selected comes from."""
    return seen.page.locator(".origin")


def axis(seen: Seen) -> Locator:
    return seen.page.get_by_role("slider", name="Time axis")


@pytest.mark.parametrize(
    ("tape", "facts", "verdict", "code"),
    [
        (INDEX, ("trip-model", "openai-chat"), "app, proven", "C001"),
        ("2-responses-dead-zone/broken.tape", ("openai-responses",), "app, likely", "C001"),
        ("3-app-events/broken.tape", ("app-events",), "app, proven", "A001"),
        ("4-text-tool-calls/broken.tape", ("code-model",), "app, likely", "C009"),
        ("5-agent-loop/broken.tape", ("agent-model",), "app, likely", "C001"),
    ],
)
def test_an_incident_says_what_it_is_and_leads_to_its_findings(
    browser: Browser, tapes: Page, tape: str, facts: tuple[str, ...], verdict: str, code: str
) -> None:
    with shown(browser, tapes, tape) as seen:
        head = seen.page.locator(".exchange-head")
        for each in (tape, "200", *facts):
            expect(head).to_contain_text(each)
        expect(seen.page.get_by_role("tab", name="Bug")).to_have_attribute("aria-selected", "true")
        part(seen, "Events")
        expect(seen.page.locator(".verdict")).to_contain_text(verdict)
        expect(seen.page.locator(".axis-flag text", has_text=code).first).to_be_visible()
        seen.page.keyboard.press("n")
        expect(seen.page.locator(".finding[aria-current]")).to_contain_text(code)


def test_a_character_has_its_event_read_bytes_and_time_and_back(
    browser: Browser, tapes: Page
) -> None:
    with shown(browser, tapes, INDEX, "tab=calls&char=1:12") as seen:
        expect(origin(seen)).to_contain_text(
            "Character 12 of call 1: event 8, read 8, bytes 2,080 to 2,333, 418 ms"
        )
        text = seen.page.get_by_role("textbox", name="Arguments of call 1, by fragment")
        expect(text.locator(".long-text-at")).to_have_text("s")
        expect(axis(seen)).to_have_attribute(
            "aria-valuetext", "event 8 at 418 ms: call 1 arguments: '\"Lisbon\",'"
        )
        text.press("ArrowRight")
        expect(text.locator(".long-text-at")).to_have_text("b")
        text.press("ArrowDown")  # the next fragment
        expect(origin(seen)).to_contain_text("Character 18 of call 1: event 9")
        text.press("Home")
        expect(origin(seen)).to_contain_text("Character 0 of call 1: event 7")
        text.press("End")
        expect(origin(seen)).to_contain_text("Character 39 of call 1: event 11")
        first = seen.page.get_by_role("textbox", name="Arguments of call 0, by fragment")
        first.get_by_text("Lisbo").click(position={"x": 2, "y": 5})
        expect(origin(seen)).to_contain_text("Character 10 of call 0: event 5")
        origin(seen).get_by_role("button", name="Show the event").click()
        detail = seen.page.locator(".split-detail")
        expect(detail.get_by_role("heading")).to_have_text("Event 5 message")
        detail.get_by_role("button", name="Show characters 10 to 14").click()
        expect(first.locator(".long-text-at")).to_have_text("L")
        expect(first.locator(".long-text-marked")).to_have_text(["L", "isbo"])


def test_the_bytes_are_those_of_the_event(browser: Browser, tapes: Page) -> None:
    with shown(browser, tapes, INDEX, "tab=raw&event=4") as seen:
        rows = seen.page.get_by_role("textbox", name="Bytes of the response")
        marked = rows.locator(".hex-text .byte-marked")
        expect(marked).to_have_count(1334 - 1085)
        assert "".join(marked.all_inner_texts()).startswith('data: {"id": "chatcmpl')
        rows.locator(".hex-text [data-byte='1400']").click()
        expect(origin(seen)).to_contain_text("Event 5: bytes 1,334 to 1,581; read 5")
        rows.press("ArrowUp")
        rows.press("Enter")
        expect(origin(seen)).to_contain_text("Event 4")
        seen.page.get_by_role("button", name="text", exact=True).click()
        text = seen.page.get_by_role("textbox", name="The response as text")
        expect(text.locator(".long-text-marked")).to_contain_text('"arguments": "y\\": \\""')


def test_time_travel_shows_what_each_client_has_at_each_event(
    browser: Browser, tapes: Page
) -> None:
    with shown(browser, tapes, INDEX, "tab=travel&event=2") as seen:
        right = seen.page.get_by_role("region", name="A correct client")
        suspect = seen.page.get_by_role("region", name="single-current-call")
        expect(suspect).to_contain_text("loses call 0")
        expect(suspect).to_contain_text("differs")
        seen.page.keyboard.press(".")
        expect(origin(seen)).to_contain_text("after event 3 at 316 ms of 14")
        expect(right.locator(".long-text")).to_have_text(['{"cit'])
        # The fragment of call 0 is in call 1, and keeps the colour of its own call.
        expect(suspect.locator(".building h3")).to_contain_text("find_restaurants")
        expect(suspect.locator(".long-text span.call-0")).to_have_text('{"cit')
        slider = seen.page.get_by_role("slider", name="Time travel")
        slider.press("End")
        expect(origin(seen)).to_contain_text("the stream has ended")
        expect(right.locator(".long-text")).to_have_count(2)
        expect(suspect.locator(".long-text")).to_have_text(
            ['{"city": "Lisbon"}{"city": "Lisbon", "food": "vegetarian"}']
        )
        slider.press("Home")
        expect(origin(seen)).to_contain_text("before the first event")
        expect(right).to_contain_text("no call")
        seen.page.get_by_role("button", name="Play").click()
        expect(origin(seen)).to_contain_text("the stream has ended")


def test_the_page_of_an_app_travels_the_response_that_the_app_read(
    browser: Browser, tapes: Page
) -> None:
    with shown(browser, tapes, "3-app-events/broken.tape", "tab=travel") as seen:
        panel = seen.page.locator(PART)
        expect(panel).to_contain_text("built its calls from the response of exchange 2")
        seen.page.get_by_role("slider", name="Time travel").press("End")
        expect(panel.get_by_role("region", name="index-as-arguments")).to_contain_text("differs")


def test_everything_is_reached_by_keys(browser: Browser, tapes: Page) -> None:
    with shown(browser, tapes, INDEX, "tab=events") as seen:
        press = seen.page.keyboard.press
        detail = seen.page.locator(".split-detail h2")
        press("j")
        expect(detail).to_have_text("Event 0 message")
        for _ in range(3):
            press("j")
        press("k")
        expect(detail).to_have_text("Event 2 message")
        press("/")
        seen.page.keyboard.type("vegetari")
        expect(seen.page.get_by_role("row")).to_have_count(2)
        press("Escape")
        press("a")
        press("ArrowRight")
        expect(axis(seen)).to_have_attribute(
            "aria-valuetext", "event 3 at 316 ms: call 0 arguments: '{\"cit'"
        )
        press("ArrowDown")
        expect(axis(seen)).to_have_attribute(
            "aria-valuetext", "read 3 at 316 ms: 248 B, 1 event completed"
        )
        press("+")
        expect(seen.page.locator(".axis-map")).to_be_visible()
        press("0")
        expect(seen.page.locator(".axis-map")).to_have_count(0)
        tabs = seen.page.get_by_role("tab")
        for name in tabs.all_inner_texts()[2:]:
            press("]")
            expect(seen.page.locator("[role=tab][aria-selected=true]")).to_have_text(name)
        press("[")
        expect(seen.page.locator("[role=tab][aria-selected=true]")).to_contain_text("Log")
        press("j")
        expect(seen.page.locator("pre.log-line")).to_contain_text("find_restaurants")
        press("?")
        expect(seen.page.get_by_role("dialog")).to_contain_text("Go to the time axis")


def test_the_link_leads_back_to_what_is_selected(browser: Browser, tapes: Page) -> None:
    with shown(browser, tapes, STALL, "finding=D001.1") as seen:
        expect(seen.page.locator(".finding[aria-current]")).to_contain_text("stall")
        seen.page.get_by_role("button", name="Show event 1").click()
        expect(seen.page.locator(".split-detail")).to_contain_text("Then nothing came for 12.01 s")
        seen.page.wait_for_url("**tab=events&finding=D001.1&event=1")
        seen.page.reload()
        expect(seen.page.locator(".split-detail h2")).to_have_text("Event 1 message")


def test_a_silence_is_to_scale(browser: Browser, tapes: Page) -> None:
    with shown(browser, tapes, STALL, "tab=events") as seen:
        zone = seen.page.locator(".axis-dead")
        expect(zone.locator("text")).to_have_text(
            "12.01 s without progress, within arguments (D001)"
        )
        dead = zone.locator("rect").bounding_box()
        plot = axis(seen).bounding_box()
        assert dead is not None
        assert plot is not None
        assert dead["width"] > plot["width"] * 0.8
        axis(seen).hover(position={"x": plot["width"] / 2, "y": 60})
        seen.page.mouse.down()
        seen.page.mouse.move(plot["x"] + plot["width"] / 2 + 90, plot["y"] + 60)
        seen.page.mouse.up()
        # A tenth of the axis is seen now: all of it silent.
        expect(seen.page.locator(".axis-mark")).to_have_count(0)
        seen.page.get_by_role("button", name="All").click()
        expect(seen.page.locator(".axis-mark").first).to_be_attached()


def test_the_second_clock_has_a_lane(browser: Browser, tapes: Page) -> None:
    with shown(browser, tapes, "late.tape", "tab=events") as seen:
        expect(seen.page.locator(".axis-name")).to_contain_text(["app took"])
        seen.page.keyboard.press("j")
        axis(seen).press("ArrowDown")
        axis(seen).press("ArrowDown")
        expect(axis(seen)).to_have_attribute(
            "aria-valuetext", "the app had taken 100 B at 500 ms, 480 ms after they arrived"
        )


def test_a_websocket_has_frames(browser: Browser, tapes: Page) -> None:
    with shown(browser, tapes, SOCKET, "tab=frames") as seen:
        expect(seen.page.get_by_role("tab", name="Raw")).to_have_count(0)
        rows = seen.page.get_by_role("grid", name="Frames")
        expect(rows).to_have_attribute("aria-rowcount", "49")
        rows.get_by_text("app →").nth(1).click()
        detail = seen.page.locator(".split-detail")
        expect(detail.get_by_role("heading")).to_have_text("Frame 3: text, app →")
        expect(detail).to_contain_text("What is the weather in Gent now")
        seen.page.keyboard.press("j")
        expect(detail).to_contain_text("completes event")


def test_without_times_events_stand_in_their_order(browser: Browser, tapes: Page) -> None:
    with opened(browser, f"{tapes.url}/?token={TOKEN}#/?q=pasted.tape") as seen:
        row = seen.page.locator("#row-0")
        for name in ("at", "first", "duration"):
            expect(row.locator(f".c-{name}")).to_have_text("-")
        row.get_by_role("link").click()
        expect(seen.page.get_by_text("No times were recorded: events stand in")).to_be_visible()
        part(seen, "Events")
        seen.page.keyboard.press("j")
        axis(seen).press("ArrowRight")
        expect(axis(seen)).to_have_attribute("aria-valuetext", re.compile(r"^event 1: call 0 arg"))
        part(seen, "Time travel")
        seen.page.get_by_role("slider", name="Time travel").press("End")
        expect(origin(seen)).to_contain_text("the stream has ended")
        for name in ("Calls", "Raw", "Request", "Findings"):
            part(seen, name)
        assert "NaN" not in seen.page.inner_text("main")
        assert seen.violations() == []
        assert seen.problems == []


def test_it_is_copied_as_what_runs_elsewhere(browser: Browser, tapes: Page) -> None:
    with shown(browser, tapes, INDEX, "tab=request") as seen:
        seen.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        for name, says in (
            ("curl", "curl -N"),
            ("pytest", "@pytest.mark.tape("),
            ("deltatape command", "deltatape why "),
        ):
            seen.page.get_by_role("button", name=f"Copy as {name}").click()
            expect(seen.page.locator(".copy [role=status]")).to_have_text(f"Copied as {name}.")
            assert says in seen.page.evaluate("navigator.clipboard.readText()")
        expect(seen.page.locator(".request")).to_contain_text("(hidden by the recorder)")
        seen.page.locator("summary", has_text="find_restaurants").click()
        expect(seen.page.get_by_role("textbox", name="Schema of find_rest")).to_be_visible()


@pytest.mark.parametrize("tape", ["hostile.tape", "markup.tape"])
def test_hostile_text_is_text(browser: Browser, tapes: Page, tape: str) -> None:
    with shown(browser, tapes, tape, "event=1", width=NARROW) as seen:
        for name in ("Events", "Calls", "Time travel", "Raw", "Request", "Findings", "Bug"):
            part(seen, name)
            text = seen.page.inner_text("main")
            assert "\u202e" not in text
            assert "\x1b" not in text
            assert not seen.overflows()
        assert seen.page.title() == f"{tape}#1 - deltatape"
        part(seen, "Calls")
        expect(seen.page.locator(".call")).to_contain_text([r"\u{202e}"])
        assert seen.page.locator("main img, main script").count() == 0


def test_long_arguments_are_cut_until_one_asks_and_only_in_view_in_the_page(
    browser: Browser, tapes: Page
) -> None:
    with shown(browser, tapes, "long.tape", "tab=calls") as seen:
        text = seen.page.get_by_role("textbox", name="Arguments of call 0, by fragment")
        expect(seen.page.locator(".call")).to_contain_text(f"The beginning of {LONG / 1e6:.1f} MB")
        seen.page.get_by_role("button", name="Load all of it").click()
        expect(seen.page.locator(".call")).not_to_contain_text("The beginning of")
        text.press("End")
        last = LONG + len('{"city": ""}') - 1
        expect(origin(seen)).to_contain_text(f"Character {last:,} of call 0: event {PIECES}")
        expect(text.locator(".long-text-at")).to_have_text("}")
        assert seen.page.locator("main *").count() < 2000


def test_a_running_exchange_grows(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "tapes").mkdir()
    growing = Growing(BROKEN, tmp_path / "tapes" / "growing.tape")
    with (
        contextlib.closing(growing.file),
        inspected(tmp_path / "tapes", tmp_path / "index") as page,
    ):
        growing.write(growing.until(1, b"response"))
        page.wait(lambda news: bool(news["running"]))
        with shown(browser, page, "growing.tape", "tab=events") as seen:
            facts = seen.page.locator(".exchange-head")
            expect(facts).to_contain_text("still going on")
            expect(facts).to_contain_text("events0")
            growing.write(growing.until(2, b"request"))
            expect(seen.page.get_by_role("row", name="[DONE]")).to_be_visible()
            expect(facts).not_to_contain_text("still going on")
            # Its conversation may have been asked for before the list had its row.
            seen.problems[:] = [each for each in seen.problems if "404" not in each]


def test_a_document_that_comes_after_newer_news_is_asked_for_again(
    browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "tapes").mkdir()
    growing = Growing(BROKEN, tmp_path / "tapes" / "growing.tape")
    asked = itertools.count()

    def hold(route: Route) -> None:
        old = route.fetch()
        if next(asked) == 0:
            growing.write(growing.until(2, b"request"))
            page.wait(lambda news: [each["exchange"] for each in news["running"]] == [2])
        route.fulfill(response=old)

    with (
        contextlib.closing(growing.file),
        inspected(tmp_path / "tapes", tmp_path / "index") as page,
    ):
        growing.write(growing.until(1, b"response"))
        page.wait(lambda news: bool(news["running"]))
        url = link(page, "growing.tape", 1, "tab=events")
        with opened(browser, url.partition("#")[0]) as seen:
            expect(seen.page.locator("#row-0")).to_be_visible()
            seen.page.route("**/api/show?*", hold)
            seen.page.goto(url)
            expect(seen.page.get_by_role("row", name="[DONE]")).to_be_visible()
            # It may be asked for once more: the page answers until that is done.
            seen.page.unroute_all(behavior="wait")


@pytest.mark.parametrize(("theme", "width"), LOOKS)
def test_everybody_can_use_it(browser: Browser, tapes: Page, theme: str, width: int) -> None:
    with shown(browser, tapes, INDEX, "event=4", theme=theme, width=width) as seen:
        assert seen.violations() == []
        for name in ("Events", "Calls", "Time travel", "Raw", "Request", "Log", "Findings", "Bug"):
            part(seen, name)
            assert seen.violations(PART) == [], name  # what is around it stays
            assert not seen.overflows(), name
    with shown(browser, tapes, SOCKET, "tab=frames&read=3", theme=theme, width=width) as seen:
        assert seen.violations(PART) == []
        assert not seen.overflows()
