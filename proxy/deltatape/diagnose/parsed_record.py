"""Record what was read from an exchange, small enough for its tape, to be compared later.

One hash covers everything that an application or a rule can see of a reply, so that changed readers
or changed bytes show. Findings are not part of it: they depend on settings and on the version.

Raise `FORM` when the hash covers other things: records of different forms are compared by their
plain numbers only.
"""

import hashlib
import json
from collections.abc import Iterator

from deltatape.diagnose.rebuild import Analysis
from deltatape.model.reply import Choice, ToolCall
from deltatape.tape.payload import ParsedAs

FORM = 1
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str)


def parsed_as(analysis: Analysis, tool: str) -> ParsedAs:
    """Return what `tool` reads from an exchange."""
    reply = analysis.reply
    text = _ENCODER.encode(_everything(analysis))
    return ParsedAs(
        tool=tool,
        dialect=reply.dialect,
        events=len(analysis.stream.events),
        calls=sum(len(choice.tool_calls) for choice in reply.choices),
        finish=reply.finish_reason_raw or "",
        form=FORM,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
    )


def misread(then: ParsedAs, now: ParsedAs) -> str:
    """Describe how the present reading differs from the recorded one; "" if it does not."""
    found = [
        f"{what} {_shown(one)}, now {_shown(other)}"
        for what, one, other in (
            ("dialect", then.dialect, now.dialect),
            ("events", then.events, now.events),
            ("calls", then.calls, now.calls),
            ("finish reason", then.finish, now.finish),
        )
        if one != other
    ]
    if not found and then.form == now.form and then.sha256 != now.sha256:
        found.append("the text, a call or its arguments, or the ending differs")
    return "; ".join(found)


def _shown(value: str | int) -> str:
    return "none" if value == "" else str(value)


def _everything(analysis: Analysis) -> object:
    stream, reply = analysis.stream, analysis.reply
    return {
        "format": stream.format,
        "anomalies": [anomaly.kind for anomaly in stream.anomalies],
        "pending": stream.pending is not None,
        "choices": [list(_choice(choice)) for choice in reply.choices],
        "usage": reply.usage,
        "model": reply.model,
        "error": reply.error,
        "terminated": reply.terminated,
    }


def _choice(choice: Choice) -> Iterator[object]:
    yield from (choice.index, choice.text, choice.reasoning, choice.refusal)
    yield from (choice.finish_reason_raw, choice.finish_detail)
    for call in choice.every_call:
        yield list(_call(call))


def _call(call: ToolCall) -> Iterator[object]:
    yield from (call.index, call.kind, call.id, call.name, call.arguments, call.status)
