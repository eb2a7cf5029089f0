from helpers.chat import FINISH
from helpers.exchanges import FINISH_TEXT, call, found, one, pasted


def test_a_second_finish_reason_is_reported() -> None:
    finding = one(pasted(*call(), FINISH, FINISH_TEXT), "S004")
    assert "'tool_calls', then 'stop'" in finding.message


def test_one_finish_reason_is_fine() -> None:
    assert not found(pasted(*call(), FINISH), "S004")
