"""What a reply says, without where on the wire it said so: the measure of what is harmless."""

from typing import TypeAlias

from deltatape.model.reply import Choice, Reply, ToolCall
from deltatape.wire.json_value import canonical

_Call: TypeAlias = tuple[str | None, str | None, str, str, str]
_Choice: TypeAlias = tuple[object, ...]


def said(reply: Reply) -> tuple[object, ...]:
    """All that a client gets of a reply; equal for replies that say the same.

    Arguments as the JSON value that they are, if they are one; else as they came.
    """
    return (
        reply.dialect,
        tuple(_choice(one) for one in reply.choices),
        reply.model,
        reply.id,
        reply.error,
        reply.terminated,
        tuple((one.call_id, one.name) for one in reply.results),
    )


def _choice(choice: Choice) -> _Choice:
    calls = (*choice.tool_calls, *choice.server_calls, *(one.call for one in choice.text_calls))
    return (
        choice.index,
        choice.text,
        choice.reasoning,
        choice.refusal,
        tuple(_call(each) for each in calls),
        choice.finish_reason_raw,
        choice.media,
    )


def _call(call: ToolCall) -> _Call:
    arguments = canonical(call.arguments) or call.arguments
    return call.id, call.name, call.kind.value, arguments, call.status.value
