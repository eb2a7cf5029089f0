"""What the rules on calls inside text share: whether the application asks for them itself."""

import re
from collections.abc import Iterator, Sequence

from deltatape.model.asked import Asked, Message
from deltatape.model.reply import Channel, Choice, TextCall
from deltatape.rules._base import RuleContext, label
from deltatape.wire.json_value import canonical

_GENERIC = "tool"
_TAG = re.compile(r"[^\s{>\]]{0,60}+[>\]]?")
_SHORTEST_TAG = 5
_SPECIAL = re.compile(r"<[^<>\s]{1,60}>|\[[A-Z_/]{1,40}\]")
"""What models put between and behind their calls."""
_OWN = frozenset({"assistant", "model", "tool"})
"""Roles of what the model wrote itself, or tools gave it."""


def is_asked_for(asked: Asked, written: TextCall) -> bool:
    """Whether such calls are the application's own protocol.

    So it is if the request declares no tools, and the notation is the generic one or its opening
    tag stands in the messages: the prompt asks for it.
    """
    if asked.tools:
        return False
    return written.family == _GENERIC or _stands_in(asked.history, written)


def is_told_of(asked: Asked, written: TextCall) -> bool:
    """Whether the opening tag of such a call stands in what the request tells the model."""
    told = [message for message in asked.history if message.role not in _OWN]
    return _stands_in(told, written)


def _stands_in(messages: Sequence[Message], written: TextCall) -> bool:
    """Whether the opening tag of such a call stands in one of `messages`."""
    tag = _TAG.match(written.call.arguments_raw)
    told = tag[0] if tag else ""
    return len(told) >= _SHORTEST_TAG and any(told in message.text for message in messages)


def is_followed(choice: Choice, written: TextCall) -> bool:
    """Whether the text goes on behind a call with something that is no call and no special token.

    A model that calls ends its turn with its calls.
    """
    at = written.end
    for other in choice.text_calls:
        if other.channel is written.channel and other.start >= at:
            if _has_words(choice.text[at : other.start]):
                return True
            at = other.end
    return _has_words(choice.text[at:])


def _has_words(text: str) -> bool:
    return re.search(r"\w", _SPECIAL.sub("", text)) is not None


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
