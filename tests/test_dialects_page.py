"""The page about dialects tells of all of them, in the order in which they are asked."""

import re
from pathlib import Path

from deltatape.dialects import DIALECTS
from deltatape.text_calls.families import FAMILIES

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "dialects.md").read_text()


def test_every_dialect_has_a_row_in_the_order_of_detection() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE)
    assert rows == [dialect.name for dialect in DIALECTS], "docs/dialects.md lists others"


def test_every_notation_of_calls_in_text_is_named() -> None:
    _, _, section = PAGE.partition("## Tool calls inside text")
    named = re.findall(r"`([a-z0-9-]+)`", section.partition("## ")[0])
    assert [name for name in named if name in {each.name for each in FAMILIES}] == [
        family.name for family in FAMILIES
    ]
