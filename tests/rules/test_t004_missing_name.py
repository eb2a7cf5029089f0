from helpers.chat import FINISH, calls, entry
from helpers.exchanges import call, found, one, pasted


def test_a_call_without_a_name_is_reported() -> None:
    finding = one(pasted(calls(entry(0, "c1", arguments="{}")), FINISH), "T004")
    assert finding.message.startswith("call 0 has no name")


def test_a_fragment_that_belongs_to_no_call_is_reported() -> None:
    finding = one(pasted(calls(entry(0, arguments="{}")), FINISH), "T004")
    assert "belongs to no call" in finding.message


def test_a_named_call_is_fine() -> None:
    assert not found(pasted(*call(), FINISH), "T004")
