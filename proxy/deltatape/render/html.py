"""The report: the page of `deltatape open` in one file, with the documents of one exchange.

It makes no requests: script and style are in it, and its policy allows these two alone, by
their hashes. Text of a tape is only in the documents, which are data to a browser, and in what is
shown where no script runs; the page shows it as text.
"""

import json
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape as for_html
from typing import NamedTuple

from deltatape.printable import escape


class PageFiles(NamedTuple):
    """The built page."""

    script: str
    style: str


def report_html(page: PageFiles, title: str, documents: Mapping[str, str], *, plain: str) -> str:
    """Return the whole file.

    Args:
        page: what draws the documents.
        title: the title of the window.
        documents: each by its key in the data of the page, as JSON.
        plain: the same for people, shown where no script runs.
    """
    members = ",\n".join(f"{json.dumps(key)}: {text.strip()}" for key, text in documents.items())
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(page.script)}'",
            f"style-src '{_hash(page.style)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{_text(title)}</title>\n<style>{page.style}</style>\n</head>\n<body>\n"
        f'<div id="app"></div>\n<noscript><pre>{_text(plain)}</pre></noscript>\n'
        f'<script type="application/json" id="deltatape-data">{_data(members)}</script>\n'
        f"<script>{page.script}</script>\n</body>\n</html>\n"
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _data(members: str) -> str:
    """Return an object that ends no script element, and holds no line that JSON alone allows."""
    text = members.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return f"{{{text}}}"


def _text(text: str) -> str:
    return for_html("\n".join(map(escape, text.split("\n"))))
