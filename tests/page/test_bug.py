"""The bug and the difference of two exchanges, as `deltatape open` shows them in Chromium."""

from urllib.parse import quote

from playwright.sync_api import Browser, expect

from helpers.browser import LOOKS, opened
from helpers.clients import ROOT
from helpers.inspected import TOKEN, Page

INCIDENTS = ROOT / "recordings" / "incidents"
FIRST = "1-index-keyed-accumulation/broken.tape"
UPSTREAM = "1-index-keyed-accumulation/upstream.tape"


def link(page: Page, *parts: object) -> str:
    place = "/".join(quote(str(part), safe="") for part in parts)
    return f"{page.url}/?token={TOKEN}#/{place}"


def test_one_goes_from_the_verdict_to_what_the_app_sent(browser: Browser, incidents: Page) -> None:
    with opened(browser, link(incidents, "x", FIRST, 1)) as seen:
        shown = seen.text(".conclusion")
        assert "App, proven" in shown
        assert "single-current-call" in shown
        assert "missing" in seen.text(".sent .call-card")
        foreign = seen.page.locator(".sent .call-card ins").all_inner_texts()
        assert "".join(foreign) == '{"city": "Lisbon"}'
        seen.page.get_by_role("link", name="request #2").click()
        seen.page.wait_for_function("location.hash.endsWith('/2')")
        assert "#2" in seen.text("h1")
        assert seen.problems == []


def test_the_provider_s_stream_stands_beside_what_the_app_sent_to_its_page(
    browser: Browser, incidents: Page
) -> None:
    with opened(browser, link(incidents, "x", "3-app-events/broken.tape", 1)) as seen:
        assert "by the wire, in #2" in seen.text(".delivered h3")
        assert "to its page, in #1" in seen.text(".sent h3")
        assert seen.page.locator(".sent .call-card").count() == 4


def test_the_provider_s_side_leads_to_the_page_on_which_the_bug_shows(
    browser: Browser, incidents: Page
) -> None:
    with opened(browser, link(incidents, "x", "3-app-events/broken.tape", 2)) as seen:
        seen.page.wait_for_selector(".made")
        shown = seen.text(".conclusion")
        assert "something else, in #1" in shown
        assert shown.count("it treats every event as a separate call") == 1
        seen.page.locator(".conclusion").get_by_role("link", name="exchange #1").click()
        seen.page.wait_for_function("location.hash.endsWith('/1')")


def test_what_else_is_wrong_in_a_conversation_stands_beside_the_verdict(
    browser: Browser, incidents: Page
) -> None:
    with opened(browser, link(incidents, "x", FIRST, 1)) as seen:
        told = seen.page.locator(".conclusion li", has_text="app-error-in-history")
        expect(told).to_contain_text("#3 C009 app-error-in-history (app, likely)")
        told.get_by_role("link", name="#3").click()
        seen.page.wait_for_function("location.hash.endsWith('/3')")
    with opened(browser, link(incidents, "x", "5-agent-loop/broken.tape", 1)) as seen:
        told = seen.page.locator(".conclusion li", has_text="orphan-tool-result")
        expect(told).to_contain_text("#2 #3 #4 #5 #6 #7 C004")
        told.get_by_role("link", name="#2").click()
        expect(seen.page.locator(".sent")).to_contain_text("It has: result for 'call_list_3'")


def test_a_lost_call_is_shown_once_where_it_was_delivered(
    browser: Browser, incidents: Page
) -> None:
    with opened(browser, f"{link(incidents, 'x', FIRST, 2)}?tab=findings") as seen:
        lost = seen.page.locator(".finding", has_text="get_weather, call_weather_1").first
        expect(lost.locator(".evidence")).to_have_text(['{"city": "Lisbon"}'])
        expect(lost).to_contain_text("Delivered in exchange 1")


def test_two_exchanges_are_compared_event_by_event(browser: Browser, incidents: Page) -> None:
    url = link(incidents, "diff", FIRST, 1, UPSTREAM, 1)
    for theme, width in LOOKS:
        with opened(browser, url, theme=theme, width=width) as seen:
            assert seen.text("h1") == "1 call differs"
            assert seen.page.locator(".call-change del").first.inner_text() == ' "Lisbon"}'
            kinds = seen.page.locator(".diff tbody .kind").all_inner_texts()
            assert [each.split()[-1] for each in kinds] == [
                *("equal", "altered", "altered", "dropped", "equal")
            ]
            assert seen.violations() == []
            assert not seen.overflows()


def test_a_call_that_differs_in_two_ways_is_one_call(browser: Browser, incidents: Page) -> None:
    loop = "5-agent-loop/broken.tape"
    with opened(browser, link(incidents, "diff", loop, 1, loop, 2)) as seen:
        assert seen.text("h1") == "1 call differs"
        assert seen.page.locator(".call-change").count() == 2


def test_an_exchange_is_compared_with_another_one_of_the_list(
    browser: Browser, incidents: Page
) -> None:
    with opened(browser, link(incidents, "x", FIRST, 1)) as seen:
        seen.page.get_by_role("button", name="Compare with").click()
        assert f"compare with {FIRST}#1" in seen.text(".comparing")
        seen.page.get_by_role("searchbox").fill("1-index-keyed-accumulation/broken")
        seen.page.locator(
            "#exchanges a.name", has_text="1-index-keyed-accumulation/broken#2"
        ).click()
        seen.page.wait_for_selector(".diff")
        assert "2 calls differ" in seen.text(".diff h1")
        place = quote(FIRST, safe="")
        assert seen.page.url.endswith(f"#/diff/{place}/1/{place}/2")
        seen.page.go_back()
        seen.page.wait_for_selector("#exchanges")
        assert seen.page.locator(".comparing").count() == 0
