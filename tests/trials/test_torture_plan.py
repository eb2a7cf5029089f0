"""Which runs are made, and that they are the same for the same seeds."""

from deltatape.trials.torture_plan import Task, alone, tasks
from helpers.tortured import answers, named


def planned(*names: str, positions: tuple[int, ...] = (0, 1), seeds: int = 3) -> list[Task]:
    return list(tasks(named(*names), answers(), positions, range(1, seeds + 1)))


def test_a_harmless_variation_is_laid_upon_all_exchanges_and_a_hostile_one_upon_each() -> None:
    found = [(task.variation.name, task.positions) for task in planned("crlf", "cut-in-text")]
    assert found == [("crlf", (0, 1)), ("cut-in-text", (0,)), ("cut-in-text", (1,))]


def test_what_is_left_to_chance_is_tried_with_every_seed_and_the_rest_once() -> None:
    byte, random = planned("every-byte", "random-reads")
    assert [attempt.seed for attempt in byte.tries] == [None]
    assert [attempt.seed for attempt in random.tries] == [1, 2, 3]
    reads = {attempt.varied[0].reads for attempt in random.tries}
    assert len(reads) == 3


def test_seeds_that_make_the_same_are_tried_once() -> None:
    (first, _) = planned("cut-in-text", seeds=200)
    bodies = [attempt.varied[0].body for attempt in first.tries]
    assert 1 < len(bodies) == len(set(bodies)) < 200


def test_an_exchange_in_which_it_has_no_place_is_not_varied() -> None:
    (task,) = planned("split-utf8")
    assert [sorted(attempt.varied) for attempt in task.tries] == [[1]]
    (none, _) = planned("cut-in-arguments")
    assert none.tries == ()


def test_a_seed_makes_the_same_of_an_exchange_whichever_others_are_varied() -> None:
    (both,) = planned("random-reads")
    for attempt in both.tries:
        (first,) = tasks(named("random-reads"), answers(), (0,), (attempt.seed or 0,))
        assert first.tries[0].varied[0] == attempt.varied[0]
        single = alone(both, attempt, 0)
        assert single.positions == (0,)
        assert single.tries == first.tries


def test_recorded_waits_are_left_out_and_those_of_a_variation_stay() -> None:
    (byte, *pauses) = planned("every-byte", "stall-in-text")
    body_ns = byte.tries[0].varied[0].reads[-1].t_ns
    assert body_ns < 1_000_000_000
    assert pauses
