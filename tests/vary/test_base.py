from deltatape.diagnose.rebuild import rebuild
from deltatape.model.stream import Stream
from deltatape.mutate import MutableExchange, MutationChoices, SeededChoices
from deltatape.vary._base import legal, reply_content, rewriting, rewritten
from helpers.chat import FINISH
from helpers.mutated import (
    ONE,
    START,
    TWO_EVENTS,
    broken_gzip,
    chat,
    event_values,
    gzipped,
    in_pieces,
    recorded,
)
from helpers.taped import taped


def drop_last(draft: MutableExchange, _stream: Stream, _: MutationChoices) -> None:
    """The last event is missing."""
    draft.units[-1].removed = True


def drop_none(_draft: MutableExchange, _stream: Stream, _: MutationChoices) -> None:
    """Nothing is missing."""


def test_a_change_of_the_plain_body_is_coded_as_it_was() -> None:
    changed = rewriting("x")(drop_last)
    assert (changed.name, changed.harmless, changed.summary) == ("x", True, drop_last.__doc__)
    assert changed.make(gzipped(taped(TWO_EVENTS)), SeededChoices(1)) == gzipped(
        taped(TWO_EVENTS[:1], end_ms=10)
    )
    assert rewriting("x")(drop_none).make(taped(TWO_EVENTS), SeededChoices(1)) is None


def test_what_has_no_plain_body_is_not_changed() -> None:
    for exchange in (taped(()), broken_gzip()):
        assert rewritten(drop_last, exchange, SeededChoices(1)) is None


def test_a_change_is_legal_where_the_reply_stays() -> None:
    drops = legal("x")(drop_last)
    told = (START, *in_pieces("{}"), FINISH)
    assert drops.make(chat(*told, done=False), SeededChoices(1)) is None
    made = drops.make(chat(*told, {"choices": []}, done=False), SeededChoices(1))
    assert event_values(made)[-1] == FINISH


def test_places_on_the_wire_are_not_content() -> None:
    one = chat(START, *in_pieces('{"a"', ':"b c"}'), FINISH)
    assert rebuild(one) != rebuild(ONE)
    assert reply_content(rebuild(one)) == reply_content(rebuild(ONE))


def test_arguments_that_are_the_same_json_have_the_same_content() -> None:
    one = chat(START, *in_pieces('{"a": "b c"}'), FINISH)
    assert reply_content(rebuild(one)) == reply_content(rebuild(ONE))
    broken = chat(START, *in_pieces('{"a": "b c"'), FINISH)
    assert reply_content(rebuild(broken)) != reply_content(rebuild(ONE))


def test_results_that_a_stream_carries_are_content() -> None:
    assert ("get_weather" in str(reply_content(rebuild(recorded("app-events"))))) is True
