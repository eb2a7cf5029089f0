"""Facts about regular expressions on all Pythons that are supported."""

import re

import pytest

from deltatape.regex import OR_NONE


@pytest.mark.parametrize("repeat", ["*+", "++", "?+", "{1,3}+"])
def test_a_possessive_group_ends_where_its_last_match_does(repeat: str) -> None:
    found = re.match(f"(?:ab?c{OR_NONE}){repeat}", "aca")
    assert found is not None
    assert found.span() == (0, 2)
