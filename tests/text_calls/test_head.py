from deltatape.text_calls._head import CallHead, before, literal, maybe, read_head, word
from deltatape.text_calls._source import TextSource

STEPS = (literal("call", "invoke"), word("name", r"\w+"), maybe("[ARGS]"), before("{"))


def read(text: str) -> CallHead | None:
    return read_head(TextSource(text, {}), 0, STEPS)


def test_a_whole_head_has_its_words_and_ends_before_what_only_follows() -> None:
    for text, end in (("call f [ARGS] {}", 13), ("invoke f\n{", 8)):
        head = read(text)
        assert head == CallHead(end=end, words={"name": "f"})
        assert head.word("name") == "f"
        assert head.word("id") == ""


def test_a_head_in_which_the_text_ends_is_cut() -> None:
    assert read("ca") == CallHead(end=2, cut=True)
    assert read("call ") == CallHead(end=5, cut=True)
    assert read("call get") == CallHead(end=8, cut=True, partial="get")
    assert read("call get [AR") == CallHead(end=12, cut=True, words={"name": "get"})
    assert read("call get ") == CallHead(end=9, cut=True, words={"name": "get"})


def test_anything_else_is_no_head() -> None:
    assert all(read(text) is None for text in ("", " call f{", "call me, f", "call -", "tell f{"))


def test_a_word_does_not_begin_with_the_end_of_a_sentence() -> None:
    assert read_head(TextSource(". And", {}), 0, (word("name", r"\S+"),)) is None
