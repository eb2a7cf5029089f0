from deltatape.text_calls._source import TextSource


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
