"""JSON for programs: objects with `"version": 1`, in ASCII, so that nothing in them can act.

The keys are a contract: they are added to, never renamed.
"""

import json
from collections.abc import Iterable
from textwrap import indent

from deltatape.diagnose.check_tape import TapeReport
from deltatape.diagnose.rebuild import Analysis
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Finding
from deltatape.model.log import LogEntry
from deltatape.model.reply import TextCall, ToolCall
from deltatape.model.story import Entry, Story
from deltatape.model.stream import Event
from deltatape.model.suspect import Made, Suspect, Tried
from deltatape.render.audit import Audit
from deltatape.render.ci_log import inert_text
from deltatape.render.listing import TapeRow
from deltatape.why.news import news

VERSION = 1


def findings_json(findings: Iterable[Finding]) -> str:
    """Findings as `check --format json` has them."""
    return _document(findings=[_finding(finding) for finding in findings])


class FindingsDocument:
    """`check --format json`, written tape by tape; see `Report`. Schema: docs/findings.schema.json.

    It is empty if no tape could be read.
    """

    def __init__(self) -> None:
        self._begun = False
        self._findings = 0

    def tape(self, report: TapeReport) -> str:
        """See `Report.tape`."""
        if report.problem:
            return ""
        begin = "" if self._begun else f'{{\n "version": {VERSION},\n "findings": ['
        self._begun = True
        return begin + "".join(self._next(each.finding) for each in report.reported)

    def end(self) -> str:
        """See `Report.end`."""
        if not self._begun:
            return ""
        return ("\n ]" if self._findings else "]") + "\n}\n"

    def _next(self, finding: Finding) -> str:
        comma = "," if self._findings else ""
        self._findings += 1
        return f"{comma}\n" + indent(inert_json(_finding(finding)), "  ")


def story_json(story: Story) -> str:
    """`why --format json`."""
    verdict = story.verdict
    return _document(
        verdict={
            "blame": verdict.blame,
            "confidence": verdict.confidence,
            "summary": verdict.summary,
            "fix": verdict.fix,
        },
        suspects=[_suspect(each) for each in story.suspects],
        clients=[_tried(each) for each in story.tried],
        timeline=[_entry(entry) for entry in story.timeline],
        findings=[_finding(finding) for finding in story.findings],
    )


def _suspect(suspect: Suspect) -> dict[str, object]:
    return {
        "name": suspect.name,
        "mistakes": [
            {"axis": each.axis, "value": each.value, "says": each.says, "fix": each.fix}
            for each in suspect.mistakes
        ],
        "exact": suspect.exact,
        "says": suspect.says,
        "fix": suspect.fix,
        "source": suspect.source,
        "made": _made(suspect.made),
    }


def _tried(tried: Tried) -> dict[str, object]:
    return {
        "name": tried.name,
        "differs": None if tried.problem else tried.differs,
        "problem": tried.problem or None,
        "made": _made(tried.made),
    }


def _made(made: Made) -> dict[str, object]:
    calls = [{"id": each.id, "name": each.name, "arguments": each.arguments} for each in made.calls]
    return {"calls": calls, "errors": list(made.errors), "text": made.text}


def calls_json(analyses: Iterable[Analysis]) -> str:
    """`show --calls --format json`."""
    each = [(one, choice) for one in analyses for choice in one.reply.choices]
    return _document(
        calls=[_call(call, one) for one, choice in each for call in choice.tool_calls],
        server_calls=[_call(call, one) for one, choice in each for call in choice.server_calls],
        text_calls=[_text_call(call, one) for one, choice in each for call in choice.text_calls],
    )


def events_json(analysis: Analysis) -> str:
    """`show --events --format json`."""
    pairs = zip(analysis.stream.events, news(analysis), strict=True)
    return _document(events=[_event(event, analysis.exchange, new) for event, new in pairs])


def reads_json(exchange: Exchange) -> str:
    """`show --reads --format json`; data that is not UTF-8 is in hexadecimal."""
    return _document(reads=[_read(data, t_ns) for data, t_ns in _reads(exchange)])


def log_json(entries: Iterable[LogEntry]) -> str:
    """`show --log --format json`; a line that is not UTF-8 is in hexadecimal."""
    return _document(
        log=[
            {"t_ns": each.t_ns, "stream": each.stream, **_text("line", each.line)}
            for each in entries
        ]
    )


def tapes_json(rows: Iterable[TapeRow]) -> str:
    """`ls --format json`."""
    return _document(tapes=[_tape(row) for row in rows])


def _tape(row: TapeRow) -> dict[str, object]:
    seen = row.overview
    worst = seen.worst if seen else None
    return {
        "path": row.path,
        "bytes": row.bytes,
        "age_ns": row.age_ns,
        "exchanges": row.exchanges,
        "recording": row.recording,
        "error": row.error or None,
        "analysed": seen is not None,
        "apps": list(seen.apps) if seen else [],
        "models": list(seen.models) if seen else [],
        "findings": seen.findings if seen else None,
        "worst": _finding(worst) if worst else None,
    }


def audits_json(audits: Iterable[Audit]) -> str:
    """`fsck --format json`."""
    return _document(tapes=[_audit(audit) for audit in audits])


def _audit(audit: Audit) -> dict[str, object]:
    report = audit.report
    return {
        "path": audit.path,
        "error": audit.error or None,
        "problems": [
            {
                "kind": problem.kind,
                "line": problem.line,
                "exchange": problem.exchange,
                "message": problem.message,
                "span": None if problem.span is None else list(problem.span),
            }
            for problem in (report.problems if report else ())
        ],
        "facts": list(report.facts) if report else [],
    }


def _document(**content: object) -> str:
    return inert_json({"version": VERSION, **content}) + "\n"


def inert_json(value: object) -> str:
    """`value` as ASCII that acts neither on a terminal nor on a CI system that reads the log."""
    text = json.dumps(value, ensure_ascii=True, indent=1)
    return inert_text(text.replace("\x7f", "\\u007f"), r"#\u0023")


def _finding(finding: Finding) -> dict[str, object]:
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity,
        "blame": finding.blame,
        "confidence": finding.confidence,
        "message": finding.message,
        "tape": finding.tape,
        "line": finding.line,
        "exchange": finding.exchange,
        "event": finding.event,
        "span": None if finding.span is None else list(finding.span),
        "t_ns": finding.t_ns,
        "evidence": finding.evidence,
        "hint": finding.hint,
    }


def _entry(entry: Entry) -> dict[str, object]:
    return {
        "t_ns": entry.t_ns,
        "exchange": entry.exchange,
        "event": entry.event,
        "what": entry.what,
        "source": entry.source,
    }


def _call(call: ToolCall, analysis: Analysis) -> dict[str, object]:
    return {
        "exchange": analysis.exchange.number,
        "dialect": analysis.reply.dialect,
        "index": call.index,
        "wire_index": call.wire_index,
        "id": call.id,
        "name": call.name,
        "kind": call.kind,
        "arguments": call.arguments,
        "status": call.status,
        "repairs": list(call.repairs),
    }


def _text_call(written: TextCall, analysis: Analysis) -> dict[str, object]:
    return {
        **_call(written.call, analysis),
        "family": written.family,
        "channel": written.channel,
        "closed": written.closed,
    }


def _event(event: Event, exchange: Exchange, new: str) -> dict[str, object]:
    return {
        "exchange": exchange.number,
        "event": event.number,
        "type": event.type,
        "id": event.id,
        "data": event.data,
        "new": new,
        "span": list(event.place.span),
        "line": event.place.line,
        "t_ns": event.place.t_ns if exchange.timed else None,
    }


def _reads(exchange: Exchange) -> Iterable[tuple[bytes, int | None]]:
    return ((read.data, read.t_ns if exchange.timed else None) for read in exchange.reads)


def _read(data: bytes, t_ns: int | None) -> dict[str, object]:
    return {"t_ns": t_ns, "bytes": len(data), **_text("data", data)}


def _text(name: str, data: bytes) -> dict[str, str]:
    """`data` as text under `name`; under "hex" where it is not UTF-8."""
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {"hex": data.hex()}
