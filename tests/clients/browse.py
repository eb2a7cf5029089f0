"""Opens a page in a real browser and prints what it says when done: browse.py URL CHROMIUM."""

import sys

from playwright.sync_api import sync_playwright

LIMIT_MS = 20_000


def main() -> None:
    """Print the text of the element `out` when the page sets `document.title` to `done`."""
    url, program = sys.argv[1:]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(url, timeout=LIMIT_MS)
        page.wait_for_function("document.title === 'done'", timeout=LIMIT_MS)
        sys.stdout.write(page.inner_text("#out") + "\n")
        browser.close()


if __name__ == "__main__":
    main()
