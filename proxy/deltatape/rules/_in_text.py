"""What the rules on calls inside text share: whether the application asks for them itself."""

import re
from collections.abc import Iterator

from deltatape.model.asked import Asked
from deltatape.model.reply import Channel, Choice, TextCall
from deltatape.rules._base import RuleContext, label
from deltatape.wire.json_value import canonical

_GENERIC = "tool"
_TAG = re.compile(r"[^\s{>\]]{0,60}+[>\]]?")
_SHORTEST_TAG = 5


def is_asked_for(asked: Asked, written: TextCall) -> bool:
    """Whether such calls are the application's own protocol.

    So it is if the request declares no tools, and the notation is the generic one or its opening
    tag stands in the messages: the prompt asks for it.
    """
    if asked.tools:
        return False
    if written.family == _GENERIC:
        return True
    tag = _TAG.match(written.call.arguments_raw)
    told = tag[0] if tag else ""
    return len(told) >= _SHORTEST_TAG and any(told in message.text for message in asked.history)


def in_answer(context: RuleContext) -> Iterator[TextCall]:
    """The closed calls in the text of the answer, which an application will take apart."""
    for choice in context.reply.choices:
        for written in choice.text_calls:
            if written.closed and written.channel is Channel.TEXT:
                yield written


def is_structured(choice: Choice, written: TextCall) -> bool:
    """Whether the reply also has this call as a tool call: the same name and arguments."""
    call = written.call
    wanted = _value(call.arguments)
    return any(
        other.name == call.name and _value(other.arguments) == wanted for other in choice.tool_calls
    )


def _value(arguments: str) -> str:
    """The arguments for comparison; none are an empty object."""
    return canonical(arguments or "{}") or arguments


def where(written: TextCall) -> str:
    """How a message names the call: `call 0 (get_weather) in the text (hermes)`."""
    channel = "reasoning" if written.channel is Channel.REASONING else "text"
    return f"{label(written.call)} in the {channel} ({written.family})"
