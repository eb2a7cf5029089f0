"""The status of a finished call: what a correct client can do with its arguments."""

import enum

from deltatape.model.reply import CallKind, CallStatus
from deltatape.model.request_summary import RequestSummary
from deltatape.wire.json_scan import ScanState, TokenKind, scan
from deltatape.wire.json_value import parse, read_object


class CallEndCause(enum.Enum):
    """What ended a call."""

    NORMAL = "normal"
    """A finish reason that lets the model end a call, or the dialect's terminal signal."""
    CUT = "cut"
    """The end of the body, a limit, or an error."""
    OPEN = "open"
    """The end of the body, where the dialect would have said that the call is complete."""


_BROKEN = {
    ScanState.PREFIX: CallStatus.TRUNCATED,
    ScanState.MALFORMED: CallStatus.MALFORMED,
    ScanState.EXTRA: CallStatus.EXTRA_DATA,
}


def judge(text: str, name: str, ending: CallEndCause, request: RequestSummary) -> CallStatus:
    """Return the status of a call of the function `name` with the arguments `text`."""
    if ending is not CallEndCause.OPEN and read_object(text) is not None:
        return CallStatus.COMPLETE
    scanner = scan(text)
    if scanner.verdict is ScanState.EMPTY:
        return _judge_empty(name, ending, request)
    if scanner.verdict is not ScanState.COMPLETE:
        return _BROKEN[scanner.verdict]
    if ending is CallEndCause.OPEN:
        return CallStatus.TRUNCATED
    return (
        CallStatus.COMPLETE if scanner.kind is TokenKind.OBJECT else _judge_value(parse(text).value)
    )


def judge_call(
    kind: CallKind, text: str, name: str, ending: CallEndCause, request: RequestSummary
) -> CallStatus:
    """Like `judge`, for any kind of call: a custom tool's input is free text."""
    if not name:
        return CallStatus.NO_NAME
    if kind is CallKind.CUSTOM:
        return CallStatus.COMPLETE if ending is CallEndCause.NORMAL else CallStatus.TRUNCATED
    return judge(text, name, ending, request)


def _judge_value(value: object) -> CallStatus:
    """Return the status of whole JSON that is not an object."""
    if isinstance(value, str) and isinstance(parse(value).value, dict):
        return CallStatus.DOUBLE_ENCODED
    return CallStatus.NOT_OBJECT


def _judge_empty(name: str, ending: CallEndCause, request: RequestSummary) -> CallStatus:
    """Return the status of empty arguments: valid for a tool without required parameters."""
    if ending is not CallEndCause.NORMAL:
        return CallStatus.TRUNCATED
    tool = request.tool(name)
    if tool is None:
        return CallStatus.EMPTY_SUSPECT
    required = None if tool.parameters is None else tool.parameters.get("required")
    return CallStatus.EMPTY_SUSPECT if required else CallStatus.EMPTY_OK
