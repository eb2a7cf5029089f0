from helpers.responses import added, codes, created, done, ended, findings, message, numbered, say

EVENTS = numbered(created(), added(message()), say("Hi"), done(message("Hi")), ended(message("Hi")))


def test_a_missing_number_is_reported_once_with_both_numbers() -> None:
    found = [one for one in findings(*EVENTS[:1], *EVENTS[2:]) if one.code == "S007"]
    assert [(one.severity, one.message) for one in found] == [
        ("warning", "the sequence number 2 comes after 0")
    ]


def test_numbers_in_a_row_and_no_numbers_are_fine() -> None:
    assert codes(*EVENTS) == []
    bare = [{key: event[key] for key in event if key != "sequence_number"} for event in EVENTS]
    assert codes(*bare) == []
