from deltatape.diagnose.rebuild import rebuild
from deltatape.vary._base import said
from helpers.chat import FINISH
from helpers.mutated import ONE, START, chat, in_pieces
from helpers.varied import of


def test_where_on_the_wire_it_stands_is_not_said() -> None:
    one = chat(START, *in_pieces('{"a"', ':"b c"}'), FINISH)
    assert rebuild(one) != rebuild(ONE)
    assert said(rebuild(one)) == said(rebuild(ONE))


def test_arguments_that_are_the_same_json_say_the_same() -> None:
    one = chat(START, *in_pieces('{"a": "b c"}'), FINISH)
    assert said(rebuild(one)) == said(rebuild(ONE))
    broken = chat(START, *in_pieces('{"a": "b c"'), FINISH)
    assert said(rebuild(broken)) != said(rebuild(ONE))


def test_results_that_a_stream_carries_are_said() -> None:
    assert ("get_weather" in str(said(rebuild(of("app-events"))))) is True
