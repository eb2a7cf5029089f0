"""An explanation as Markdown, to paste into an issue: verdict, fix, suspects, evidence, timeline.

Text of a tape is put in code spans or made inert: no mentions, links, fences or markup, on any
site.
"""

import re
from collections.abc import Iterator, Sequence
from textwrap import dedent

from deltatape.model.explanation import Explanation, ReplyRepetition
from deltatape.model.finding import Finding
from deltatape.model.reply import ToolCall
from deltatape.printable import count, escape, excerpt
from deltatape.render.explanation import client_outcome, suspect_fit, timeline_lines
from deltatape.render.findings import blamed, excluded, place, possible, sides
from deltatape.render.lines import plain

_WIDTH = 110
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&$])")
_TICKS = re.compile("`+")
_NOTHING = "<!-- -->"
"""Is put before a character that Markdown would interpret, and is not shown."""
_ACTIVE = re.compile(r"(@|#|://|www\.)")
_SHOWN = 160


def explanation_markdown(explanation: Explanation) -> str:
    """The explanation as Markdown, as GitHub and GitLab render it."""
    return "\n".join(_lines(explanation)) + "\n"


def _lines(explanation: Explanation) -> Iterator[str]:
    arrival, promise = explanation.arrival, explanation.promise
    status = "no response" if arrival.status is None else f"status {arrival.status}"
    model = f" {code(promise.model)}" if promise.model else ""
    code_of = f" ({explanation.verdict.code})" if explanation.verdict.code else ""
    yield f"### Verdict: {explanation.verdict.shown}{code_of}"
    yield ""
    yield (
        f"{code(f'{explanation.tape}#{explanation.exchange}')} {code(promise.target)},"
        f" {arrival.dialect}{model}, {status}, {count(arrival.events, 'event')} in"
        f" {count(arrival.reads, 'read')}"
    )
    yield ""
    yield inert(explanation.verdict.summary)
    yield ""
    doubts = possible(explanation.verdict)
    yield from (f"- {inert(each)}" for each in doubts)
    if doubts:
        yield ""
    yield f"**Fix:** {inert(explanation.verdict.fix)}"
    yield ""
    yield from _suspects(explanation)
    yield from _calls(explanation)
    yield from _findings(explanation.findings)
    yield from _folded("Timeline", dedent(plain(timeline_lines(explanation, _WIDTH))).rstrip("\n"))
    yield "Written by `deltatape why` from the tape alone."


def _suspects(explanation: Explanation) -> Iterator[str]:
    if explanation.suspects:
        yield "| the app behaves like | how well | what that does |"
        yield "| --- | --- | --- |"
        for each in explanation.suspects:
            yield _row(code(each.name), inert(suspect_fit(each)), inert(each.says))
        yield ""
    if explanation.tried:
        yield "| client | | what it makes of this response |"
        yield "| --- | --- | --- |"
        for tried in explanation.tried:
            verdict = "not tried" if tried.problem else ("**wrong**" if tried.differs else "right")
            yield _row(inert(tried.name), verdict, code(client_outcome(tried)))
        yield ""


def _calls(explanation: Explanation) -> Iterator[str]:
    if not explanation.arrival.calls and explanation.repetition is None:
        return
    repetition = explanation.repetition
    repeated = f"repeated by request {repetition.exchange}" if repetition else "repeated"
    yield f"| call | name | id | arguments that arrived | {repeated} |"
    yield "| --- | --- | --- | --- | --- |"
    for call in explanation.arrival.calls:
        again = _repeated_call(repetition, call)
        cells = (code(call.name or ""), code(call.id or ""), _arguments(call.arguments))
        yield _row(str(call.index), *cells, again)
    for extra in repetition.extra if repetition else ():
        cells = (code(extra.name or ""), code(extra.id or ""), "never delivered")
        yield _row("", *cells, _arguments(extra.arguments))
    yield ""


def _repeated_call(repetition: ReplyRepetition | None, call: ToolCall) -> str:
    """Describe a call in a later request."""
    if repetition is None:
        return "not on the tape"
    pair = repetition.of(call)
    if pair is None:
        return ""
    if pair.repetition is None:
        return "**lost**"
    return (
        f"**differs:** {_arguments(pair.repetition.arguments)}" if pair.differs else "as delivered"
    )


def _arguments(text: str) -> str:
    return code(excerpt(text, _SHOWN)) if text else "(no bytes)"


def _findings(findings: Sequence[Finding]) -> Iterator[str]:
    for finding in findings:
        where = code(place(finding))
        yield f"- **{finding.code} {finding.name}** ({finding.severity}, {blamed(finding)}) {where}"
        yield f"  {inert(finding.message)}"
        if finding.evidence not in finding.message:
            yield f"  {code(finding.evidence)}"
        yield from (f"  {code(side)}" for side in (*sides(finding), *excluded(finding)))
    if findings:
        yield ""


def _folded(title: str, text: str) -> Iterator[str]:
    """Yield `text` in a closed fence inside a collapsed section."""
    fence = "`" * max(3, 1 + _longest_ticks(text))
    yield from (f"<details><summary>{title}</summary>", "", f"{fence}text", text, fence, "")
    yield from ("</details>", "")


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def code(text: str) -> str:
    """Return `text` as a code span, safe in a table."""
    shown = escape(text).replace("|", "\\|")
    if not shown.strip():
        return ""
    ticks = "`" * (1 + _longest_ticks(shown))
    pad = " " if shown[0] == "`" or shown[-1] == "`" else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def _longest_ticks(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)


def inert(text: str) -> str:
    """Return `text` without markup, mentions, links or references."""
    return _ACTIVE.sub(rf"\1{_NOTHING}", _SPECIAL.sub(r"\\\1", escape(text)))
