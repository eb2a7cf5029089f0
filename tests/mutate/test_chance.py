from deltatape.mutate import Seeded


def test_the_same_seed_chooses_the_same() -> None:
    one, other = Seeded(7), Seeded(7)
    assert [one.choose(10) for _ in range(50)] == [other.choose(10) for _ in range(50)]


def test_the_choices_of_a_seed_stay_what_they_are() -> None:
    chance = Seeded(1)
    assert [chance.choose(100) for _ in range(4)] == [65, 19, 90, 35]


def test_every_choice_is_made_and_none_beyond() -> None:
    chance = Seeded(-3)
    assert {chance.choose(5) for _ in range(200)} == {0, 1, 2, 3, 4}
