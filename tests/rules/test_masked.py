import pytest

from deltatape.rules.masked import same_but_masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("sk-fake-000000", "**************"),
        ("sk-fake-000000", "***"),
        ("write to a@b.example now", "write to [REDACTED] now"),
        ("write to a@b.example now", "write to <redacted:email> now"),
        ("one two three four", "one *** three ***"),
        ("one two three four", "\u2022\u2022\u2022 two [Filtered] four"),
        ("", "{removed}"),
    ],
)
def test_a_masked_text_is_the_same_on_either_side(text: str, masked: str) -> None:
    assert same_but_masked(text, masked)
    assert same_but_masked(masked, text)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("one", "two"),
        ("one two", "one ** two"),
        ("one two", "two ***"),
        ("one two", "*** one"),
        ("one two three", "one *** four *** three"),
        ("one two", "one t*** two"),
        ("aa", "aa***a"),
        ("", "a***"),
    ],
)
def test_what_shows_beside_the_mask_has_to_be_there(text: str, masked: str) -> None:
    assert not same_but_masked(text, masked)
