import pytest

from deltatape.text_calls._code import CodeTracker


def is_code(text: str) -> bool:
    """Whether the `@` in `text` is inside code."""
    return CodeTracker(text).inside(text.index("@"))


@pytest.mark.parametrize(
    "text",
    [
        "```\n@\n```",
        "```python title=x\n@",
        "~~~\n@\n~~~",
        "- item\n\n      ```\n      @\n",
        "> ```\n> @\n",
        "````\n```\n@\n````",
        "```\n~~~\n@",
        "```\n``` not its end\n@",
        "say `@`",
        "say ``a ` b @ `` there",
        "`a` and `@` there",
        "say `@\non the next line` still",
    ],
)
def test_places_in_fences_and_inline_code_are_code(text: str) -> None:
    assert is_code(text)


@pytest.mark.parametrize(
    "text",
    [
        "@",
        "```\nx\n```\n@",
        "~~~\nx\n~~~~  \n@",
        "`a` @ `b`",
        "it`s @",
        "it`s @ here\n\nand `there`",
        "a ` stray one\n@ and `more`",
        "```one line``` @",
        "a ~~~ @",
        "x" * 100 + "```\n@",
        "x" * 100 + "\n~~~\n~~~\n@",
    ],
)
def test_places_outside_are_not(text: str) -> None:
    assert not is_code(text)


def test_backticks_in_what_was_skipped_count_for_nothing() -> None:
    text = "@ ``` \n```\n` @ and `"
    tracker = CodeTracker(text)
    assert not tracker.inside(0)
    tracker.skip(text.rindex("\n") + 3)
    assert not tracker.inside(text.rindex("@"))
