import json
from dataclasses import replace

from deltatape.model.finding import Confidence, Finding, Severity
from deltatape.render.lines import plain
from deltatape.render.listing import TapeRow, tape_lines, tapes_json
from deltatape.why.overview import TapeOverview

WORST = Finding(
    code="T001",
    name="empty-arguments",
    severity=Severity.ERROR,
    blame=None,
    confidence=Confidence.PROVEN,
    message="",
    hint="",
    tape="a.tape",
    line=None,
    exchange=1,
    event=None,
    span=None,
    t_ns=None,
    evidence="",
)
SEEN = TapeOverview(
    exchanges=2, apps=("curl/8",), models=("gpt-fake", "o", "p"), findings=1, worst=WORST
)
ROW = TapeRow(
    path="a.tape",
    bytes=2048,
    age_ns=90_000_000_000,
    exchanges=2,
    recording=False,
    overview=SEEN,
    error="",
)


def shown(*rows: TapeRow, width: int = 100) -> list[str]:
    return plain(tape_lines(rows, width)).splitlines()


def test_a_tape_is_a_line_with_all_that_tells_it_apart() -> None:
    assert shown(ROW) == [
        "a.tape  2.0 kB  2 exchanges  curl/8  gpt-fake +2  error T001 empty-arguments  90.0 s ago"
    ]


def test_a_healthy_tape_is_called_so_and_an_empty_one_nothing() -> None:
    healthy = replace(ROW, overview=replace(SEEN, worst=None))
    empty = TapeOverview(exchanges=0, apps=(), models=(), findings=0, worst=None)
    one, two = shown(healthy, replace(ROW, exchanges=0, overview=empty))
    assert "healthy" in one
    assert two.split() == ["a.tape", "2.0", "kB", "0", "exchanges", "90.0", "s", "ago"]


def test_a_tape_that_is_still_recorded_or_from_the_future_says_so() -> None:
    assert shown(replace(ROW, recording=True))[0].endswith("recording, 90.0 s ago")
    assert shown(replace(ROW, age_ns=-5))[0].endswith("0.0 ms ago")


def test_what_is_not_known_is_said_with_what_to_do() -> None:
    large = replace(ROW, overview=None, exchanges=None)
    broken = replace(large, error="line 1: no tape\x1b")
    assert shown(large, broken) == [
        "a.tape  2.0 kB  not analysed                     90.0 s ago",
        r"a.tape  2.0 kB  unreadable: line 1: no tape\x1b  90.0 s ago",
        "1 tape too large to analyse here: deltatape ls --full",
    ]


def test_names_of_a_tape_are_escaped_and_short() -> None:
    (line,) = shown(replace(ROW, overview=replace(SEEN, apps=("a\x1b" * 50,), models=())))
    assert "\x1b" not in line
    assert len(line) < 120


def test_no_tapes_are_said_with_what_to_do() -> None:
    assert "deltatape record" in plain(tape_lines([]))


def test_a_narrow_page_has_shorter_and_fewer_columns() -> None:
    row = replace(ROW, path="recordings/the-name-of-a-tape.tape", age_ns=7_380_000_000_000)
    app = replace(SEEN, apps=("OpenAI/Python 3.5",), models=("a-model-with-a-name",))
    row = replace(row, overview=app)
    name = "recordings/the-name-of-a-tape.tape"
    front = f"{name}  2.0 kB  2 exchanges"
    assert [shown(row, width=width) for width in (140, 110, 100, 80, 60, 52)] == [
        [f"{front}  OpenAI/Python 3.5  a-model-with-a-name  error T001 empty-arguments  2 h ago"],
        [f"{front}  OpenAI/Py...  a-model-wi...  error T001 e...  2 h ago"],
        [f"{name}  2 exchanges  OpenAI/P...  a-model-w...  error T001 e...  2 h ago"],
        [f"{name}  a-model-with-...  error T001 emp...  2 h ago"],
        ["...rdings/the-name-of-a-tape.tape  error T001 em...  2 h ago"],
        ["...the-name-of-a-tape.tape  error T001 e...  2 h ago"],
    ]


def test_tapes_are_listed() -> None:
    row = TapeRow(
        path="a.tape",
        bytes=1,
        age_ns=2,
        exchanges=None,
        recording=False,
        overview=None,
        error="no tape",
    )
    (listed,) = json.loads(tapes_json([row]))["tapes"]
    assert listed == {
        "path": "a.tape",
        "bytes": 1,
        "age_ns": 2,
        "exchanges": None,
        "recording": False,
        "error": "no tape",
        "analysed": False,
        "apps": [],
        "models": [],
        "findings": None,
        "worst": None,
    }
