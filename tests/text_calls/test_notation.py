from deltatape.text_calls._notation import (
    CallHead,
    TextSource,
    before,
    literal,
    maybe,
    read_head,
    word,
)


def test_a_literal_is_found_from_any_place_and_nowhere_is_the_end() -> None:
    source = TextSource("a<b>c<b>d", {})
    assert [source.find("<b>", at) for at in (0, 1, 2, 5, 6, 0)] == [1, 1, 5, 5, 9, 1]
    assert source.find("<x>", 0) == source.find("<x>", 4) == source.end


def test_the_first_of_several_literals_comes_with_its_end() -> None:
    source = TextSource("..</a></b>", {})
    assert source.first(("</b>", "</a>"), 0) == (2, 6)
    assert source.first(("</x>",), 0) == (source.end, source.end)


def test_a_text_is_cut_at_its_end_or_within_a_literal() -> None:
    source = TextSource("ab</to", {})
    assert source.cut("</tool>", 2)
    assert source.cut("</tool>", 6)
    assert not source.cut("</to", 2)
    assert not source.cut("</tool>", 0)


def test_names_are_written_like_names_or_offered() -> None:
    source = TextSource("", {"my tool": None})
    assert source.is_name("my tool")
    assert source.is_name("mcp__server/read-file.v2")
    assert not any(source.is_name(name) for name in ("", "...", "<name>", "your tool", "a" * 201))


def test_blanks_are_skipped() -> None:
    assert TextSource(" \n\tx", {}).blanks(0) == 3
    assert TextSource("x", {}).blanks(1) == 1


def test_a_tool_was_offered_or_nothing_is_known_of_any() -> None:
    source = TextSource("", {"get_time": None})
    assert source.may_be_tool("get_time", whole=True)
    assert source.may_be_tool("get", whole=False)
    assert not source.may_be_tool("get", whole=True)
    assert not source.may_be_tool("put", whole=False)
    assert TextSource("", {}).may_be_tool("put", whole=True)


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


def test_anything_else_is_not_a_head() -> None:
    assert all(read(text) is None for text in ("", " call f{", "call me, f", "call -", "tell f{"))


def test_a_word_does_not_begin_with_the_end_of_a_sentence() -> None:
    assert read_head(TextSource(". And", {}), 0, (word("name", r"\S+"),)) is None
