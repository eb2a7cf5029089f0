from deltatape.model.exchange import Exchange
from deltatape.mutate import Chance, Mutator, Seeded
from deltatape.mutate._base import CHAT, mutator
from deltatape.mutate._draft import Draft
from helpers.mutated import ONE
from helpers.taped import taped


@mutator("first-gone", 1, CHAT)
def first_gone(draft: Draft, _: Chance) -> None:
    """The first event is missing."""
    draft.units[0].removed = True


def test_a_function_with_a_docstring_is_a_mutator() -> None:
    assert isinstance(first_gone, Mutator)
    assert (first_gone.name, first_gone.row, first_gone.dialects) == ("first-gone", 1, CHAT)
    assert first_gone.summary == "The first event is missing."
    changed = first_gone.mutate(ONE, Seeded(1))
    assert isinstance(changed, Exchange)
    assert ONE.body.endswith(changed.body)


def test_what_cannot_be_rewritten_is_not() -> None:
    gzip = taped(headers=((b"content-encoding", b"gzip"),))
    assert first_gone.mutate(gzip, Seeded(1)) is None
