"""Two exchanges beside each other, on the page of a server, in Chromium."""

from pathlib import Path

from playwright.sync_api import Browser

from helpers.browser import opened
from helpers.clients import ROOT
from helpers.inspected import TOKEN, inspected

TAPES = ROOT / "recordings" / "incidents" / "1-index-keyed-accumulation"


def test_an_exchange_is_compared_with_another_one_of_the_list(
    browser: Browser, tmp_path: Path
) -> None:
    with (
        inspected(TAPES, tmp_path / "index") as server,
        opened(browser, f"{server.url}/?token={TOKEN}#/x/broken.tape/1") as seen,
    ):
        seen.page.get_by_role("button", name="Compare with").click()
        assert "compare with broken.tape#1" in seen.text(".comparing")
        seen.page.locator("#exchanges a.name", has_text="broken#2").click()
        seen.page.wait_for_selector(".diff")
        assert "2 calls differ" in seen.text(".diff h1")
        assert seen.page.url.endswith("#/diff/broken.tape/1/broken.tape/2")
        seen.page.go_back()
        seen.page.wait_for_selector("#exchanges")
        assert seen.page.locator(".comparing").count() == 0
