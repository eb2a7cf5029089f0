from deltatape.suspects.choice import CHAT, USUAL, mistake


def test_a_mistake_of_the_wild_has_the_usual_cost() -> None:
    choice = mistake("key", "one", CHAT, says="mixes calls", fix="do not")
    assert (choice.cost, choice.mistake.axis, choice.mistake.value) == (USUAL, "key", "one")
