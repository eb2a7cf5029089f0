import re

import pytest

from deltatape.render.document import document_lines
from deltatape.render.lines import plain
from deltatape.rules import RULES
from deltatape.rules.documentation import rule_page

TEXT = """\
# Title

One two three
four five six
- an item that is
  long enough
- https://example.com/very/long/address

```
- code   stays
{"a":"bbbbbbbbbbbbbbbbbbbbbbbbb"}

```
end
"""


def test_paragraphs_are_filled_and_code_is_not() -> None:
    assert plain(document_lines(TEXT, 20)) == (
        "# Title\n\nOne two three four\nfive six\n- an item that is\n  long enough\n-\n"
        "  https://example.com/very/long/address\n\n```\n- code   stays\n"
        '{"a":"bbbbbbbbbbbbbb\n    bbbbbbbbbbb"}\n\n```\nend\n'
    )


def test_code_may_be_the_end() -> None:
    assert plain(document_lines("```\nx\n```\n")) == "```\nx\n```\n"


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_word_of_the_documentation_is_lost_or_too_wide(
    width: int, subtests: pytest.Subtests
) -> None:
    for rule in RULES:
        with subtests.test(rule.code):
            text = rule_page(rule.code) or ""
            shown = plain(document_lines(text, width))
            assert re.sub(r"\s", "", shown) == re.sub(r"\s", "", text)
            assert all(len(each) <= width or "://" in each for each in shown.splitlines())
