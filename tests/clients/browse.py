"""Opens a page in a real browser and prints what it says when done.

browse.py URL CHROMIUM [HAR]     HAR: a file for the archive that Playwright records
"""

import sys

from playwright.sync_api import sync_playwright

LIMIT_MS = 20_000


def main() -> None:
    """Print the text of the element `out` when the page sets `document.title` to `done`."""
    url, program, *archive = sys.argv[1:]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        context = browser.new_context(record_har_path=archive[0] if archive else None)
        page = context.new_page()
        page.goto(url, timeout=LIMIT_MS)
        page.wait_for_function("document.title === 'done'", timeout=LIMIT_MS)
        sys.stdout.write(page.inner_text("#out") + "\n")
        context.close()
        browser.close()


if __name__ == "__main__":
    main()
