from dataclasses import replace

from deltatape.rules.progress import Phase, silences, watched_until
from helpers.contexts import context_of
from helpers.exchanges import TEXT, timed
from helpers.taped import MS


def test_a_sentinel_counts_as_progress_and_is_the_end() -> None:
    exchange = timed((0.1, TEXT), (1.0, b"data: [DONE]\n\n"), end_s=30)
    (silence,) = silences(context_of(exchange), 10_000 * MS)
    assert (silence.phase, silence.open) == (Phase.BEFORE_END, True)


def test_the_tape_watches_until_the_last_thing_it_says() -> None:
    exchange = timed((0.1, TEXT), end_s=2)
    assert watched_until(exchange) == 2_000 * MS
    crashed = replace(exchange, end=None)
    assert watched_until(crashed) == 100 * MS
    assert watched_until(replace(crashed, idle_ns=(7 * MS, 900 * MS))) == 900 * MS
    assert watched_until(replace(crashed, stopped_ns=1_000 * MS)) == 1_000 * MS
