from deltatape.diagnose.rebuild import rebuild
from helpers.chat import FINISH, calls, entry
from helpers.mutated import ONE, START, WHOLE, chat, joined, told
from helpers.varied import made, of, varied


def test_a_call_that_came_whole_is_opened_first() -> None:
    after = made("opened-first", WHOLE)
    opened, arguments = told(after)
    assert opened == {"index": 0, "id": "c0", "function": {"name": "get", "arguments": ""}}
    assert arguments == {"index": 0, "function": {"arguments": '{"a":"x"}'}}
    assert joined(after) == rebuild(WHOLE).tool_calls[0].arguments


def test_a_call_that_was_opened_first_stays() -> None:
    assert varied("opened-first", ONE) is None
    assert varied("opened-first", of("ollama")) is None


def test_without_an_index_nobody_could_tell_that_the_arguments_are_its_own() -> None:
    bare = calls(entry(None, "c0", name="get", arguments="{}"))
    assert varied("opened-first", chat(START, bare, FINISH)) is None
