import json
from dataclasses import replace

from deltatape.render.lines import plain
from deltatape.render.shrink import ShrinkReport, amount_of, shrink_json, shrink_lines
from deltatape.shrink.failure import Ending, failure_of
from helpers.chat import choice
from helpers.shrunk import streamed

BEFORE = [streamed(*(choice({"content": "x" * 200}) for _ in range(40)))] * 2
AFTER = streamed(choice({"content": "\x1b[31mred"}), done=False)
FAILURE = failure_of(Ending(exit_code=1, output="KeyError: 'tool'"))


def report(*after: object) -> ShrinkReport:
    assert FAILURE is not None
    return ShrinkReport(
        before=BEFORE,
        after=after,  # type: ignore[arg-type]
        failure=FAILURE,
        runs=12,
        seconds=3.4,
        whole=True,
        files=["small.tape"],
    )


def test_before_after_and_what_is_left_are_shown() -> None:
    text = plain(shrink_lines(report(AFTER), 80))
    assert "fails still: exit code 1, and KeyError: 'tool'\n" in text
    assert f"before: 2 exchanges, 82 events, {2 * len(BEFORE[0].body)} bytes\n" in text
    assert f" after: 1 exchange, 1 event, {len(AFTER.body)} bytes  (12 runs, 3 s)\n" in text
    assert '  #1 {"choices"' in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_many_events_are_not_all_shown() -> None:
    text = plain(shrink_lines(report(BEFORE[0], replace(AFTER, number=2)), 80))
    assert "  ... and 30 more\n" in text


def test_programs_get_the_same_as_json() -> None:
    told = json.loads(shrink_json(report(AFTER)))
    assert told == {
        "version": 1,
        "failure": {
            "exit_code": 1,
            "signal": "",
            "timed_out": False,
            "error": "KeyError: 'tool'",
        },
        "before": {"exchanges": 2, "events": 82, "bytes": 2 * len(BEFORE[0].body)},
        "after": {"exchanges": 1, "events": 1, "bytes": len(AFTER.body)},
        "runs": 12,
        "minimal": True,
        "files": ["small.tape"],
    }
    assert amount_of([]).told == "0 exchanges, 0 events, 0 bytes"
