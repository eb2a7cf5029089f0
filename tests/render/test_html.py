from dataclasses import replace
from html.parser import HTMLParser

from deltatape.model.suspect import Suspect
from deltatape.render.html import explanation_html
from deltatape.why import explain
from helpers.chat import FINISH, choice
from helpers.exchanges import TEXT, USER, asks, assistant, call, conversation, pasted, result
from helpers.explanations import accused, lost_arguments, suspect, tried

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u202e"


class Page(HTMLParser):
    """What a browser would see: elements, attributes, text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_tells_the_verdict_the_calls_and_the_findings() -> None:
    page = Page(explanation_html(lost_arguments()))
    assert "app, proven C002" in page.text
    assert "Fix: append every fragment to the entry of its index" in page.text
    assert "repeated by request 2" in page.text
    assert "differs (no bytes)" in page.text
    assert "C002 arguments-changed-by-app error, app, proven" in page.text
    assert "#2 repeats call 0 differently" in page.text


def test_a_page_needs_nothing_but_itself() -> None:
    page = Page(explanation_html(accused(lost_arguments(), suspect())))
    names = {name for name, _ in page.attributes}
    assert names <= {"lang", "charset", "http-equiv", "content", "name", "class", "style"}
    assert not {"script", "img", "link", "iframe", "a"} & set(page.elements)
    policy = next(value for name, value in page.attributes if value and "default-src" in value)
    assert policy.startswith("default-src 'none'")


def test_text_of_a_tape_is_text_everywhere() -> None:
    explanation = lost_arguments(name=EVIL, arguments=EVIL)
    hostile: Suspect = replace(suspect(EVIL), says=EVIL, fix=EVIL)
    promise = replace(explanation.promise, model=EVIL, target=EVIL)
    everywhere = accused(
        replace(explanation, tape=EVIL, promise=promise), hostile, tried=(tried(EVIL),)
    )
    page = Page(explanation_html(everywhere))
    assert not {"script", "img"} & set(page.elements)
    assert page.text.count("<script>alert(1)</script>") > 5
    assert "\u202e" not in page.text


def test_suspects_and_clients_are_tables() -> None:
    clients = (tried("a"), replace(tried("b"), differs=False), tried("c", problem="no npm"))
    page = Page(explanation_html(accused(lost_arguments(), suspect(), tried=clients)))
    assert (
        "single-current-callreproduces exactly what the app did (key=single)it keeps one call"
        in page.text
    )
    assert "awrongno call" in page.text
    assert "brightno call" in page.text
    assert "cnot triedno npm" in page.text


def test_calls_that_are_lost_added_and_kept() -> None:
    heard = assistant(("c1", "get", '{"a":1}'), ("c9", "put", "{}"))
    two = asks(USER, heard, result("c1"), result("c9"))
    page = Page(
        explanation_html(explain(conversation((asks(USER), [*call(), FINISH]), (two, [TEXT])), 1))
    )
    assert "as delivered" in page.text
    assert "never delivered{}" in page.text
    said = [*call(), *call(index=1), FINISH]
    lost = asks(USER, assistant(("c1", "get", '{"a":1}')), result("c1"))
    page = Page(explanation_html(explain(conversation((asks(USER), said), (lost, [TEXT])), 1)))
    assert "lost" in page.text


def test_a_response_without_times_and_one_that_never_came() -> None:
    untimed = Page(explanation_html(explain([pasted(TEXT, *call(), FINISH)])))
    assert "not on the tape" in untimed.text
    assert ("class", "axis") in untimed.attributes
    assert ("class", "wire") in untimed.attributes
    (alone,) = conversation((asks(USER), [TEXT]))
    assert (
        "no response"
        in Page(explanation_html(explain([replace(alone, response=None, reads=())]))).text
    )


def test_a_verdict_without_blame_and_a_story_without_findings() -> None:
    explanation = explain(conversation((asks(USER), [*call(), FINISH])))
    page = explanation_html(replace(explanation, findings=(), timeline=()))
    assert '<section class="verdict nobody">' in page
    assert "<h2>Findings</h2>" not in page
    assert "<h2>Timeline</h2>" not in page


def test_a_call_in_text_is_shown_as_written_and_not_compared() -> None:
    written = choice({"content": '<tool>{"tool_name": "get", "arguments": {}}</tool>'})
    tape = conversation(
        (asks(USER), [written, *call(), FINISH]),
        (asks(USER, assistant(("c1", "get", '{"a":1}')), result("c1")), [TEXT]),
    )
    told = Page(explanation_html(explain(tape, 1))).text
    assert 'complete{"a":1}as delivered' in told
    assert "getcomplete{}\n" in told
