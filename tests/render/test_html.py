import json
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

from deltatape.render.html import PageFiles, report_html

EVIL = "</script><!--<script>alert(1)</script>\u2028\u202e\x1b[31m\"'&"
PAGE = PageFiles(script='draw("a<b");', style=":root{color:red}")


class Report(HTMLParser):
    """What a browser sees: elements with their attributes, and the text of each kind."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: dict[str, str] = {}
        self._open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs
        data = ("type", "application/json") in attrs
        if tag != "meta":
            self._open.append("data" if data else tag)

    def handle_endtag(self, tag: str) -> None:
        del tag
        self._open.pop()

    def handle_data(self, data: str) -> None:
        place = self._open[-1] if self._open else ""
        self.texts[place] = self.texts.get(place, "") + data


def written(title: str = "x.tape#1", plain: str = "VERDICT", **documents: object) -> Report:
    members = {key: json.dumps(value, ensure_ascii=False) for key, value in documents.items()}
    return Report(report_html(PAGE, title, members, plain=plain))


def hashed(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def test_a_report_holds_its_script_its_style_and_its_documents() -> None:
    report = written(why={"verdict": {"shown": "app, proven"}}, copies={})
    assert report.texts["script"] == PAGE.script
    assert report.texts["style"] == PAGE.style
    assert json.loads(report.texts["data"]) == {
        "why": {"verdict": {"shown": "app, proven"}},
        "copies": {},
    }
    assert ("id", "deltatape-data") in report.attributes
    assert ("id", "app") in report.attributes


def test_a_report_refers_to_nothing_outside() -> None:
    names = {name for name, _ in written(why={}).attributes}
    assert names == {"lang", "charset", "http-equiv", "content", "name", "id", "type"}


def test_its_policy_allows_its_own_script_and_style_alone() -> None:
    policy = next(
        value for _, value in written().attributes if value and value.startswith("default-src")
    )
    assert dict(each.split(" ", 1) for each in policy.split("; ")) == {
        "default-src": "'none'",
        "script-src": hashed(PAGE.script),
        "style-src": hashed(PAGE.style),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_text_of_a_tape_ends_no_element_and_begins_none() -> None:
    report = written(title=EVIL, plain=f"{EVIL}\nVERDICT  app", why={"summary": EVIL})
    assert report.elements.count("script") == 2
    assert report.texts["script"] == PAGE.script
    assert json.loads(report.texts["data"]) == {"why": {"summary": EVIL}}
    assert "\u2028" not in report.texts["data"]
    assert "<script>alert(1)</script>" in report.texts["title"]
    for place in ("title", "pre"):
        assert "\u202e" not in report.texts[place]
        assert "\x1b" not in report.texts[place]


def test_without_a_script_the_text_of_the_explanation_is_shown() -> None:
    assert written(plain="VERDICT   app\nFIX       none").texts["pre"] == (
        "VERDICT   app\nFIX       none"
    )
