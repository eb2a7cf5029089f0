from deltatape.model.finding import Blame
from deltatape.rules._base import MOST_ALIKE
from helpers.exchanges import FINISH_TEXT, TEXT, found, one, pasted


def test_a_comment_sent_as_data_is_reported() -> None:
    finding = one(pasted(TEXT, ": KEEP-ALIVE", FINISH_TEXT), "W004")
    assert finding.blame is Blame.UPSTREAM
    assert finding.event == 1
    assert finding.evidence == ": KEEP-ALIVE"


def test_two_objects_in_one_event_are_reported() -> None:
    assert one(pasted(TEXT, '{"choices":[]}{"choices":[]}', FINISH_TEXT), "W004")


def test_a_defect_that_is_everywhere_is_not_reported_everywhere() -> None:
    findings = found(pasted(*["garbage"] * 20, FINISH_TEXT), "W004")
    assert len(findings) == MOST_ALIKE
    assert not findings[-1].message.endswith("more)")
    findings = found(pasted(*["garbage"] * 5000, FINISH_TEXT), "W004")
    assert len(findings) == MOST_ALIKE
    assert findings[-1].message.endswith("(and 4980 more)")


def test_the_sentinel_is_no_json_and_fine() -> None:
    assert not found(pasted(TEXT, FINISH_TEXT), "W004")
