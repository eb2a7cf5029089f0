"""Opens a page and the developer tools for it in a real Chromium, and saves what these export.

devtools.py URL CHROMIUM FOLDER     sanitized.har, and whole.har with sensitive data
"""

import subprocess
import sys
import tempfile
import time  # noqa: TID251 - it waits for a program
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

LIMIT_MS = 60_000
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0")
LOGGED = """async () => {
    const { NetworkLog } = await import("/devtools/models/logs/logs.js");
    return NetworkLog.NetworkLog.instance().requests().length > 0;
}"""
EXPORT = """async (sanitize) => {
    const { NetworkLog } = await import("/devtools/models/logs/logs.js");
    const { Writer } = await import("/devtools/models/har/har.js");
    const requests = NetworkLog.NetworkLog.instance().requests();
    const progress = { createSubProgress: () => ({}) };
    return await Writer.Writer.harStringForRequests(requests, { sanitize }, progress);
}"""


def main() -> None:
    """Save the exports when the page sets `document.title` to `done`."""
    url, program, folder = sys.argv[1:]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        argv = [program, *OPTIONS, "--remote-allow-origins=*", f"--user-data-dir={profile}"]
        browser = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            save(f"127.0.0.1:{port_of(Path(profile))}", url, Path(folder))
        finally:
            browser.terminate()
            browser.wait()


def port_of(profile: Path) -> str:
    """Where the browser listens."""
    told = profile / "DevToolsActivePort"
    for _ in range(LIMIT_MS // 50):
        if told.exists() and (lines := told.read_text().split()):
            return lines[0]
        time.sleep(0.05)
    sys.exit("Chromium does not listen")


def save(address: str, url: str, folder: Path) -> None:
    """Visit the page, and save what the tools have seen of it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.connect_over_cdp(f"http://{address}")
        context = browser.contexts[0]
        page, tools = context.new_page(), context.new_page()
        session = context.new_cdp_session(page)
        target = session.send("Target.getTargetInfo")["targetInfo"]["targetId"]
        tools.goto(f"http://{address}/devtools/inspector.html?ws={address}/devtools/page/{target}")
        visit_until_logged(page, tools)
        page.goto(url, timeout=LIMIT_MS)
        page.wait_for_function("document.title === 'done'", timeout=LIMIT_MS)
        for name in ("sanitized", "whole"):
            text = tools.evaluate(EXPORT, name == "sanitized")
            (folder / f"{name}.har").write_text(text)


def visit_until_logged(page: Page, tools: Page) -> None:
    """Visit an empty page until the tools list its request.

    They log requests only some time after they have attached to a page. The next visit clears the
    list.
    """
    for _ in range(LIMIT_MS // 50):
        page.goto("data:text/html,", timeout=LIMIT_MS)
        if tools.evaluate(LOGGED):
            return
        time.sleep(0.05)
    sys.exit("the developer tools log no requests")


if __name__ == "__main__":
    main()
