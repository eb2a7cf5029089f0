from deltatape.rules.finish import Finish, meaning


def test_words_of_all_dialects_in_any_case_have_one_meaning() -> None:
    assert meaning("tool_calls") is meaning("TOOL_CALL") is meaning("tool_use") is Finish.TOOLS
    assert meaning("MAX_TOKENS") is Finish.LENGTH
    assert meaning("no such word") is meaning(None) is meaning("") is Finish.OTHER
