from deltatape.model.exchange import EndReason, Exchange
from deltatape.mutate import MutationChoices, Mutator, SeededChoices
from deltatape.mutate._base import CHAT, cut_before, mutator
from deltatape.mutate._draft import MutableExchange
from helpers.mutated import ONE, draft_of
from helpers.taped import taped


@mutator("first-gone", 1, CHAT)
def first_gone(draft: MutableExchange, _: MutationChoices) -> None:
    """The first event is missing."""
    draft.units[0].removed = True


def test_a_function_with_a_docstring_is_a_mutator() -> None:
    assert isinstance(first_gone, Mutator)
    assert (first_gone.name, first_gone.row) == ("first-gone", 1)
    assert first_gone.dialects == ("openai-chat", "mistral")
    assert first_gone.summary == "The first event is missing."
    changed = first_gone.mutate(ONE, SeededChoices(1))
    assert isinstance(changed, Exchange)
    assert ONE.body.endswith(changed.body)


def test_a_mutator_may_ask_for_more_than_a_shape() -> None:
    made = mutator("first-gone", 1, CHAT, lambda traits: traits.policy.indexes)(first_gone.change)
    assert made.dialects == ("openai-chat",)


def test_what_cannot_be_rewritten_is_not() -> None:
    gzip = taped(headers=((b"content-encoding", b"gzip"),))
    assert first_gone.mutate(gzip, SeededChoices(1)) is None


def test_a_body_ends_in_good_order_or_breaks() -> None:
    reasons = set()
    for seed in range(20):
        draft = draft_of(ONE)
        cut_before(draft, 2, SeededChoices(seed))
        result = draft.result()
        assert result
        assert result.end
        assert result.body.count(b"data: ") == 2
        reasons.add(result.end.reason)
    assert reasons == {EndReason.COMPLETE, EndReason.UPSTREAM_CLOSED, EndReason.UPSTREAM_RESET}


def test_the_same_seed_chooses_the_same() -> None:
    one, other = SeededChoices(7), SeededChoices(7)
    assert [one.choose(10) for _ in range(50)] == [other.choose(10) for _ in range(50)]


def test_the_choices_of_a_seed_stay_what_they_are() -> None:
    chance = SeededChoices(1)
    assert [chance.choose(100) for _ in range(4)] == [65, 19, 90, 35]


def test_every_choice_is_made_and_none_beyond() -> None:
    chance = SeededChoices(-3)
    assert {chance.choose(5) for _ in range(200)} == {0, 1, 2, 3, 4}
