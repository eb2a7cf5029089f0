import json

import pytest

from deltatape.diagnose.baseline import accepted, baseline_text, read_baseline
from deltatape.errors import UsageError
from deltatape.store.reader import open_tape
from helpers.incidents import BROKEN, EMPTY
from helpers.reports import report_on

FOUND = (
    *report_on(*open_tape(EMPTY).exchanges()).reported,
    *report_on(*open_tape(BROKEN).exchanges()).reported,
)

WRONG_FINGERPRINT = json.dumps(
    {"version": 1, "accepted": [{**accepted(FOUND)[0]._asdict(), "fingerprint": "x"}]}
)


def test_what_is_written_can_be_read_and_is_sorted() -> None:
    every = accepted([*FOUND, *reversed(FOUND)])
    text = baseline_text(every)
    assert read_baseline("b", text) == every
    assert text == baseline_text(accepted(reversed(FOUND)))
    codes = [entry["code"] for entry in json.loads(text)["accepted"]]
    assert codes == sorted(codes)
    assert set(codes) == {"C002", "C009", "D002", "T001"}


def test_an_entry_says_what_was_accepted_and_nothing_that_differs_from_run_to_run() -> None:
    (entry,) = json.loads(baseline_text(accepted(FOUND[:1])))["accepted"]
    assert entry == {
        "code": "T001",
        "name": "empty-arguments",
        "request": "/v1/chat/completions",
        "message": "call # (get_itinerary) has empty arguments, but its tool requires trip_id",
        "fingerprint": FOUND[0].fingerprint,
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[]", 'no object with "version": 1'),
        ('{"version": 2}', 'no object with "version": 1'),
        ('{"version": 1}', 'no list "accepted"'),
        ('{"version": 1, "accepted": [1]}', r"accepted\[0\] needs code, name, request"),
        ('{"version": 1, "accepted": [{"code": "T001"}]}', r"accepted\[0\] needs code"),
        (WRONG_FINGERPRINT, r"accepted\[0\] needs"),
    ],
)
def test_what_is_no_such_file_is_reported_with_how_to_make_one(text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=f"b.json: .*{problem}.*--write-baseline"):
        read_baseline("b.json", text)
