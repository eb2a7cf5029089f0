import pytest

from deltatape.dialects._call_end import CallEndCause, judge, judge_call
from deltatape.model.reply import CallKind, CallStatus
from deltatape.model.request_summary import NOTHING_ASKED, RequestSummary, ToolSpec


def asked(**tools: dict[str, object] | None) -> RequestSummary:
    specs = tuple(ToolSpec(name=name, parameters=schema) for name, schema in tools.items())
    return RequestSummary(
        known=True, model=None, stream=True, tools=specs, tool_choice=None, history=()
    )


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ('{"a":1}', CallStatus.COMPLETE),
        ("{}", CallStatus.COMPLETE),
        (' {"a":{"a":1}}\n', CallStatus.COMPLETE),
        ('{"a":', CallStatus.TRUNCATED),
        ('"{', CallStatus.TRUNCATED),
        ('code": 1}', CallStatus.MALFORMED),
        ('json\n{"a":1}', CallStatus.MALFORMED),
        ('{"a": NaN}', CallStatus.MALFORMED),
        ('{"a":"\x01"}', CallStatus.MALFORMED),
        ('{"a":1}}', CallStatus.EXTRA_DATA),
        ('{"a":1}</tool>', CallStatus.EXTRA_DATA),
        ('"{\\"a\\": 1}"', CallStatus.DOUBLE_ENCODED),
        ('"plain"', CallStatus.NOT_OBJECT),
        ('"[1]"', CallStatus.NOT_OBJECT),
        ("[1]", CallStatus.NOT_OBJECT),
        ("null", CallStatus.NOT_OBJECT),
        ("10", CallStatus.NOT_OBJECT),
    ],
)
@pytest.mark.parametrize("ending", [CallEndCause.NORMAL, CallEndCause.CUT])
def test_arguments_are_judged_by_themselves_when_there_are_any(
    text: str, status: CallStatus, ending: CallEndCause
) -> None:
    assert judge(text, "get", ending, NOTHING_ASKED) is status


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ('{"a":1}', CallStatus.TRUNCATED),
        ("10", CallStatus.TRUNCATED),
        ('{"a":', CallStatus.TRUNCATED),
        ("", CallStatus.TRUNCATED),
        ('{"a":1}}', CallStatus.EXTRA_DATA),
        ('code": 1}', CallStatus.MALFORMED),
    ],
)
def test_a_call_whose_end_signal_never_came_is_not_whole_even_as_json(
    text: str, status: CallStatus
) -> None:
    assert judge(text, "get", CallEndCause.OPEN, NOTHING_ASKED) is status


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (NOTHING_ASKED, CallStatus.EMPTY_SUSPECT),
        (asked(put={}), CallStatus.EMPTY_SUSPECT),
        (asked(get=None), CallStatus.EMPTY_OK),
        (asked(get={"type": "object"}), CallStatus.EMPTY_OK),
        (asked(get={"required": []}), CallStatus.EMPTY_OK),
        (asked(get={"required": ["a"]}), CallStatus.EMPTY_SUSPECT),
    ],
)
def test_empty_arguments_are_judged_by_the_tools_schema(
    request_: RequestSummary, status: CallStatus
) -> None:
    assert judge("", "get", CallEndCause.NORMAL, request_) is status
    assert judge(" ", "get", CallEndCause.NORMAL, request_) is status
    assert judge("", "get", CallEndCause.CUT, request_) is CallStatus.TRUNCATED


def test_a_call_without_name_cannot_be_run() -> None:
    status = judge_call(CallKind.FUNCTION, "{}", "", CallEndCause.NORMAL, NOTHING_ASKED)
    assert status is CallStatus.NO_NAME


def test_a_custom_tools_input_is_whole_if_its_end_was_seen() -> None:
    for text in ("", "free text", '{"a":'):
        ended = judge_call(CallKind.CUSTOM, text, "run", CallEndCause.NORMAL, NOTHING_ASKED)
        cut = judge_call(CallKind.CUSTOM, text, "run", CallEndCause.CUT, NOTHING_ASKED)
        assert (ended, cut) == (CallStatus.COMPLETE, CallStatus.TRUNCATED)
