"""Which runs are made, and that they are the same for the same seeds."""

from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.model.exchange import Exchange, Source
from deltatape.store.reader import open_tape
from deltatape.trials.torture_plan import CaseFiler, VariationTask, alone, tasks
from helpers.tortured import answers, named


def planned(
    *names: str, positions: tuple[int, ...] = (0, 1), seeds: int = 3
) -> list[VariationTask]:
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


FILING = CaseFiler(
    tapes=("x.tape",), options=("--deadline", "2s"), command=("sh", "-c", "echo it's")
)


def test_a_line_names_the_cell_and_nothing_more() -> None:
    shell = """-- sh -c 'echo it'"'"'s'"""
    assert FILING.line("crlf", "#2", None) == (
        f"deltatape torture x.tape --only crlf --exchange 2 --deadline 2s {shell}"
    )
    assert FILING.line("random-reads", "all", 7) == (
        f"deltatape torture x.tape --only random-reads --seed 7 --seeds 1 --deadline 2s {shell}"
    )
    assert "--exchange 'x.tape#2' " in FILING.line("crlf", "x.tape#2", None)


def test_a_tape_holds_what_was_played_and_replaces_that_of_an_earlier_run(tmp_path: Path) -> None:
    filing = replace(FILING, folder=tmp_path / "kept")
    filing.keep("crlf-2", answers())
    path = filing.keep("crlf-2", answers())
    assert path == str(tmp_path / "kept" / "crlf-2.tape")
    tape = open_tape(Path(path))
    assert [one.body for one in tape.exchanges()] == [one.body for one in answers()]
    assert tape.header.source is Source.GATEWAY


def test_without_a_folder_no_tape_is_kept() -> None:
    assert FILING.keep("crlf-2", answers()) == ""


def test_what_was_imported_stays_an_import_where_it_got_no_ending(tmp_path: Path) -> None:
    imported = Exchange.from_body(b"data: 1\n\n", content_type="text/event-stream", url="/v1")
    path = replace(FILING, folder=tmp_path).keep("crlf-1", [imported])
    assert open_tape(Path(path)).header.source is Source.IMPORT


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"--keep .*/file/crlf-1\.tape: "):
        replace(FILING, folder=tmp_path / "file").keep("crlf-1", answers())
