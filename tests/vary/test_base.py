from deltatape.model.stream import Stream
from deltatape.mutate import MutableExchange, MutationChoices, SeededChoices
from deltatape.vary._base import legal, rewriting, rewritten
from helpers.chat import FINISH
from helpers.mutated import START, chat, in_pieces, said
from helpers.taped import taped
from helpers.varied import TWO, broken_gzip, gzipped


def drop_last(draft: MutableExchange, _stream: Stream, _: MutationChoices) -> None:
    """The last event is missing."""
    draft.units[-1].removed = True


def drop_none(_draft: MutableExchange, _stream: Stream, _: MutationChoices) -> None:
    """Nothing is missing."""


def test_a_change_of_the_plain_body_is_coded_as_it_was() -> None:
    changed = rewriting("x")(drop_last)
    assert (changed.name, changed.harmless, changed.summary) == ("x", True, drop_last.__doc__)
    assert changed.make(gzipped(taped(TWO)), SeededChoices(1)) == gzipped(taped(TWO[:1], end_ms=10))
    assert rewriting("x")(drop_none).make(taped(TWO), SeededChoices(1)) is None


def test_what_has_no_plain_body_is_not_changed() -> None:
    for exchange in (taped(()), broken_gzip()):
        assert rewritten(drop_last, exchange, SeededChoices(1)) is None


def test_a_change_is_legal_where_the_reply_stays() -> None:
    drops = legal("x")(drop_last)
    told = (START, *in_pieces("{}"), FINISH)
    assert drops.make(chat(*told, done=False), SeededChoices(1)) is None
    made = drops.make(chat(*told, {"choices": []}, done=False), SeededChoices(1))
    assert said(made)[-1] == FINISH
