import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.model.parser_error import Means
from deltatape.rules._parser_texts import OF_FRAMEWORKS, OF_LIBRARIES, SIGNS, TABLE, Entry


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry.pattern.pattern)
@settings(max_examples=10, deadline=None)
@given(st.data())
def test_every_text_has_a_word_that_is_looked_for_first(entry: Entry, data: st.DataObject) -> None:
    text = data.draw(st.from_regex(entry.pattern, fullmatch=True)).lower()
    assert any(sign in text for sign in SIGNS)
    assert entry in OF_LIBRARIES or any(word in text for word in OF_FRAMEWORKS)


def test_libraries_come_before_frameworks_and_all_meanings_are_used() -> None:
    about = [entry.of_call for entry in TABLE]
    assert about == sorted(about)
    assert {entry.means for entry in TABLE} == set(Means)
