from collections.abc import Sequence

from deltatape.conversation import check_conversation
from deltatape.model.finding import Finding
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import USER, asks, assistant, call, digests, result

ONE = [*call(), FINISH]


def changed(
    *repeated: tuple[str | None, str | None, str], chunks: Sequence[object]
) -> list[Finding]:
    after = asks(USER, assistant(*repeated), result("c1"))
    found = check_conversation(digests((asks(USER), chunks), (after, [])))
    return [finding for finding in found if finding.code == "C002"]


def test_the_message_names_both_texts_the_path_and_the_mistake() -> None:
    (finding,) = changed(("c1", "get", ""), chunks=ONE)
    assert finding.message == (
        "call 0 (get, c1) of #1 was delivered with '{\"a\":1}', the app repeats ''"
        " (first difference at $.a): the app repeats no arguments at all"
    )
    assert finding.evidence == "(no arguments)"


def test_calls_that_were_never_delivered_are_mentioned() -> None:
    fragments = (("c1", "get", ""), (None, None, '{"a"'), (None, None, ":1}"))
    (finding,) = changed(*fragments, chunks=ONE)
    assert "it also repeats 2 calls that the wire did not deliver" in finding.message


def test_a_text_that_nothing_explains_is_still_a_change() -> None:
    (finding,) = changed(("c1", "get", '{"z":9}'), chunks=ONE)
    assert finding.message.endswith("(first difference at $.a)")


def test_another_spelling_and_mended_arguments_of_a_broken_call_are_fine() -> None:
    half = [calls(entry(0, "c1", name="get", arguments='{"a":')), FINISH]
    assert not changed(("c1", "get", '{ "a": 1 }'), chunks=ONE)
    assert not changed(("c1", "get", "{}"), chunks=half)
