"""JSON for programs: objects with `"version": 1`, in ASCII, safe to print anywhere.

The keys are a contract: they are added to, never renamed.
"""

from collections.abc import Iterable

from deltatape.diagnose.rebuild import Analysis
from deltatape.model.exchange import Exchange
from deltatape.model.explanation import Attempts, Explanation, TimelineEntry
from deltatape.model.reply import TextCall, ToolCall
from deltatape.model.stream import Event
from deltatape.model.suspect import ClientReading, ClientTrial, Suspect
from deltatape.model.tape_summary import LogEntry
from deltatape.render.audit import Audit, today_object
from deltatape.render.json_document import document, finding_object
from deltatape.render.listing import TapeRow
from deltatape.why.timeline import news


def explanation_json(explanation: Explanation) -> str:
    """`why --format json`."""
    verdict = explanation.verdict
    return document(
        verdict={
            "blame": verdict.blame,
            "confidence": verdict.confidence,
            "summary": verdict.summary,
            "fix": verdict.fix,
            "kind": verdict.kind,
            "shown": verdict.shown,
            "code": verdict.code,
            "possible": [finding_object(finding) for finding in verdict.possible],
        },
        suspects=[_suspect(each) for each in explanation.suspects],
        clients=[_tried(each) for each in explanation.tried],
        timeline=[_entry(entry) for entry in explanation.timeline],
        findings=[finding_object(finding) for finding in explanation.findings],
        attempts=_attempts(explanation.attempts),
    )


def _attempts(row: Attempts | None) -> dict[str, object] | None:
    """Return the attempts that the exchange belongs to; None if there was one."""
    if row is None:
        return None
    return {
        "answered": row.answered,
        "exit_code": row.exit_code,
        "tries": [
            {
                "exchange": each.exchange,
                "t_ns": each.t_ns,
                "outcome": each.outcome,
                "pause_ns": each.pause_ns,
                "changed": each.changed or None,
            }
            for each in row.tries
        ],
    }


def _suspect(suspect: Suspect) -> dict[str, object]:
    return {
        "name": suspect.name,
        "mistakes": [
            {"axis": each.axis, "value": each.value, "says": each.says, "fix": each.fix}
            for each in suspect.mistakes
        ],
        "exact": suspect.exact,
        "drop": suspect.drop,
        "says": suspect.says,
        "fix": suspect.fix,
        "source": suspect.source,
        "made": _made(suspect.made),
    }


def _tried(tried: ClientTrial) -> dict[str, object]:
    return {
        "name": tried.name,
        "differs": None if tried.problem else tried.differs,
        "problem": tried.problem or None,
        "made": _made(tried.made),
    }


def _made(made: ClientReading) -> dict[str, object]:
    calls = [{"id": each.id, "name": each.name, "arguments": each.arguments} for each in made.calls]
    return {"calls": calls, "errors": list(made.errors), "text": made.text}


def calls_json(analyses: Iterable[Analysis]) -> str:
    """`show --calls --format json`."""
    each = [(one, choice) for one in analyses for choice in one.reply.choices]
    return document(
        calls=[_call(call, one) for one, choice in each for call in choice.tool_calls],
        server_calls=[_call(call, one) for one, choice in each for call in choice.server_calls],
        text_calls=[_text_call(call, one) for one, choice in each for call in choice.text_calls],
    )


def events_json(analysis: Analysis) -> str:
    """`show --events --format json`."""
    pairs = zip(analysis.stream.events, news(analysis), strict=True)
    return document(events=[_event(event, analysis.exchange, new) for event, new in pairs])


def reads_json(exchange: Exchange) -> str:
    """`show --reads --format json`; data that is not UTF-8 is in hexadecimal."""
    return document(
        reads=[_read(read.data, read.t_ns if exchange.timed else None) for read in exchange.reads]
    )


def log_json(entries: Iterable[LogEntry]) -> str:
    """`show --log --format json`; a line that is not UTF-8 is in hexadecimal."""
    return document(
        log=[
            {"t_ns": each.t_ns, "stream": each.stream, **_text("line", each.line)}
            for each in entries
        ]
    )


def tapes_json(rows: Iterable[TapeRow]) -> str:
    """`ls --format json`."""
    return document(tapes=[_tape(row) for row in rows])


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
        "worst": finding_object(worst) if worst else None,
    }


def audits_json(audits: Iterable[Audit]) -> str:
    """`fsck --format json`."""
    return document(tapes=[_audit(audit) for audit in audits])


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
        **({"against": today_object(audit.asked, audit.url)} if audit.url else {}),
    }


def _entry(entry: TimelineEntry) -> dict[str, object]:
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
        "line": event.line,
        "t_ns": event.t_ns if exchange.timed else None,
    }


def _read(data: bytes, t_ns: int | None) -> dict[str, object]:
    return {"t_ns": t_ns, "bytes": len(data), **_text("data", data)}


def _text(name: str, data: bytes) -> dict[str, str]:
    """Return `data` as text under `name`; as hexadecimal under "hex" if it is not UTF-8."""
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {"hex": data.hex()}
