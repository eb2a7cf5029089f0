"""An exchange in one line, with the finding that decides the verdict."""

from collections.abc import Sequence

from deltatape.diagnose.rebuild import Analysis
from deltatape.diagnose.tool_server import read_talk
from deltatape.diagnose.websocket import read_socket
from deltatape.model.finding import Finding
from deltatape.model.tool_server import ServedCall, ToolServerTalk, stdio_name
from deltatape.printable import count, excerpt
from deltatape.render.findings import blamed, summary
from deltatape.render.numbers import duration
from deltatape.why.verdict import deciding, evidence_of

_NAMES = 80


def exchange_line(analysis: Analysis, findings: Sequence[Finding]) -> str:
    """Return `#3 POST /v1/chat/completions 200 1.8 s: 2 calls (f, g), finish stop; error S002 ...`.

    Of the findings, the line names the one that decides the verdict.
    """
    worst = deciding(evidence_of(findings))
    named = f"{worst.severity} {worst.code} {worst.name}" if worst else "no findings"
    more = f" and {len(findings) - 1} more" if len(findings) > 1 else ""
    return f"{_arrival(analysis)}; {named}{more}"


def _arrival(analysis: Analysis) -> str:
    exchange = analysis.exchange
    talk, name = read_talk(analysis), stdio_name(exchange.request.upstream)
    where = f"stdio {name}" if name else exchange.request.path
    head = [f"#{exchange.number}", exchange.request.method, excerpt(where, _NAMES)]
    head.append(str(exchange.response.status) if exchange.response else "no response")
    if exchange.timed and exchange.end:
        head.append(duration(exchange.end.t_ns - exchange.request.t_ns))
    arrived = what_arrived(analysis) if talk is None else what_was_said(talk)
    return f"{' '.join(head)}: {arrived}"


def what_was_said(talk: ToolServerTalk) -> str:
    """Summarise an exchange with a tool server: `MCP tools/call get_weather, answered`."""
    parts = [f"MCP {excerpt(', '.join(talk.methods) or 'messages', _NAMES)}"]
    parts += [f"{excerpt(call.name, _NAMES)} {_outcome(call)}" for call in talk.calls]
    if talk.tools:
        parts.append(count(len(talk.tools), "tool"))
    if talk.error and not talk.calls:
        parts.append(f"error {excerpt(talk.error, _NAMES)}")
    return ", ".join(parts)


def _outcome(call: ServedCall) -> str:
    if call.texts is None:
        return "not answered here"
    said = " ".join(call.texts)
    return (
        f"failed: {excerpt(said, _NAMES)}" if call.failed else f"answered, {len(said)} characters"
    )


def what_arrived(analysis: Analysis) -> str:
    """Summarise the reply: `2 calls (get_weather, get_time), finish tool_calls`."""
    reply = analysis.reply
    parts = []
    if reply.error is not None:
        parts.append(f"error {excerpt(reply.error, _NAMES)}")
    if reply.text:
        parts.append(f"{len(reply.text)} characters")
    # A WebSocket may have several responses; else, what counts is the first choice.
    choices = reply.choices if analysis.turns else reply.choices[:1]
    for calls, what in (
        ([call for choice in choices for call in choice.tool_calls], "call"),
        ([call for choice in choices for call in choice.server_calls], "server call"),
        ([one.call for choice in choices for one in choice.text_calls], "text call"),
    ):
        if calls:
            names = ", ".join(call.name or "?" for call in calls)
            parts.append(f"{count(len(calls), what)} ({excerpt(names, _NAMES)})")
    if finish := choices[-1].finish_reason_raw:
        parts.append(f"finish {excerpt(finish, _NAMES)}")
    if analysis.exchange.upgraded:
        parts.append(str(read_socket(analysis.exchange)))
    return ", ".join(parts) or f"{analysis.exchange.body_size} bytes"


# What a recorder prints of an exchange as it ends: a line, and one more for each finding.

_MESSAGE = 110


def live_lines(analysis: Analysis, findings: Sequence[Finding], name: str = "") -> list[str]:
    """Return `#3 POST /v1/chat/completions 200 1.8 s: ...`, and the findings, worst first.

    Args:
        analysis: the analysis of the exchange.
        findings: about it.
        name: the name of the tape, if one was requested.
    """
    first = f"{name}{_arrival(analysis)}; {summary(findings)}"
    return [first, *finding_lines(findings)]


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """Return a line per finding, worst first."""
    lines = []
    for finding in sorted(findings, key=lambda each: each.severity.rank):
        head = f"    {finding.severity} {finding.code} {finding.name} ({blamed(finding)})"
        lines.append(f"{head}: {_shortened(finding.message)}")
    return lines


def _shortened(message: str) -> str:
    """Escape `message` and cut it after a word."""
    shown = excerpt(message, _MESSAGE)
    if not shown.endswith("...") or len(message) <= _MESSAGE:
        return shown
    words, blank, _ = shown.rpartition(" ")
    return f"{words.rstrip()} ..." if blank else shown
