"""An explanation as one self-contained HTML file: no script, no font, no image, no network.

Text of a tape is escaped for the page, after characters that could hide or reorder it were made
visible. As a second defence, a policy in the page allows nothing but its own style.
"""

from collections.abc import Iterable, Iterator
from html import escape as for_html

from deltatape.model.explanation import Explanation, ReplyRepetition, TimelineEntry
from deltatape.model.finding import Finding
from deltatape.model.reply import ToolCall
from deltatape.model.suspect import ClientTrial, Suspect
from deltatape.printable import count, escape
from deltatape.render.explanation import client_outcome, suspect_fit
from deltatape.render.findings import blamed, excluded, place, possible, sides
from deltatape.render.numbers import duration, seconds, size

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_PERCENT = 100.0


def explanation_html(explanation: Explanation) -> str:
    """A whole page."""
    title = f"{explanation.tape}#{explanation.exchange}: {blamed(explanation.verdict)}"
    body = "\n".join(_body(explanation))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(title)}</title>\n<style>\n{STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _body(explanation: Explanation) -> Iterator[str]:
    yield from _head(explanation)
    yield from _verdict(explanation)
    yield from _suspects(explanation.suspects)
    yield from _client_trials(explanation.tried)
    yield from _timeline(explanation)
    yield from _calls(explanation)
    yield from _findings(explanation.findings)
    yield "<footer>Written by <code>deltatape why</code> from the tape alone.</footer>"


def _head(explanation: Explanation) -> Iterator[str]:
    arrival, promise = explanation.arrival, explanation.promise
    facts = [
        promise.target,
        arrival.dialect,
        promise.model or "",
        "no response" if arrival.status is None else f"status {arrival.status}",
        f"{count(arrival.events, 'event')} in {count(arrival.reads, 'read')}",
        size(arrival.bytes),
        "" if arrival.duration_ns is None else duration(arrival.duration_ns),
    ]
    yield f"<header><h1>{_text(f'{explanation.tape}#{explanation.exchange}')}</h1>"
    yield f"<p>{' · '.join(_text(fact) for fact in facts if fact)}</p></header>"


def _verdict(explanation: Explanation) -> Iterator[str]:
    verdict = explanation.verdict
    who = verdict.blame or "nobody"
    code = f" <span>{_text(verdict.code)}</span>" if verdict.code else ""
    yield f'<section class="verdict {who}"><h2>{_text(blamed(verdict))}{code}</h2>'
    yield f"<p>{_text(verdict.summary)}</p>"
    yield from (f"<p>{_text(each)}</p>" for each in possible(verdict))
    yield f"<p><strong>Fix:</strong> {_text(verdict.fix)}</p></section>"


def _suspects(suspects: Iterable[Suspect]) -> Iterator[str]:
    rows = [
        _row(_code(each.name), _text(suspect_fit(each)), _text(f"it {each.says}"), _text(each.fix))
        for each in suspects
    ]
    yield from _table("Suspects", ("the app behaves like", "", "what that does", "fix"), rows)


def _client_trials(tried: Iterable[ClientTrial]) -> Iterator[str]:
    rows = []
    for each in tried:
        word = "not tried" if each.problem else ("wrong" if each.differs else "right")
        cells = (_code(each.name), f'<b class="{word}">{word}</b>', _code(client_outcome(each)))
        rows.append(_row(*cells))
    yield from _table("Clients", ("client", "", "what it makes of this response"), rows)


def _timeline(explanation: Explanation) -> Iterator[str]:
    """Yield the time axis; a bar shows each entry's time from request to end."""
    times = [
        entry.t_ns - explanation.start_ns
        for entry in explanation.timeline
        if entry.t_ns is not None
    ]
    first, last = min(times, default=0), max(times, default=0)
    rows = []
    for entry in explanation.timeline:
        at = None if entry.t_ns is None else entry.t_ns - explanation.start_ns
        share = 0.0 if at is None or last == first else (at - first) / (last - first) * _PERCENT
        rows.append(_entry(entry, explanation, at, share))
    heads = ("seconds", "when", "who", "what", "findings")
    yield from _table("Timeline", heads, rows, "timeline")


def _entry(entry: TimelineEntry, explanation: Explanation, at: int | None, share: float) -> str:
    who = entry.source
    other = f"#{entry.exchange} " if entry.exchange != explanation.exchange else ""
    mark = f'<i class="{who}" style="left:{share:.2f}%"></i>' if at is not None else ""
    marked = "".join(f"<b>{_text(code)}</b> " for code in entry.codes)
    cells = (
        "" if at is None else seconds(at),
        f'<div class="axis">{mark}</div>',
        who,
        _text(other + entry.what),
        marked,
    )
    return f'<tr class="{who}">{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def _calls(explanation: Explanation) -> Iterator[str]:
    repetition = explanation.repetition
    again = f"repeated by request {repetition.exchange}" if repetition else "repeated"
    rows = [
        _row(
            str(call.index),
            _code(call.name or ""),
            _code(call.id or ""),
            _text(call.status),
            _arguments(call.arguments),
            _repeated_call(repetition, call),
        )
        for call in explanation.arrival.calls
    ]
    rows += [
        _row(
            "",
            _code(each.name or ""),
            _code(each.id or ""),
            "never delivered",
            "",
            _arguments(each.arguments),
        )
        for each in (repetition.extra if repetition else ())
    ]
    yield from _table("Calls", ("call", "name", "id", "status", "arrived", again), rows)


def _repeated_call(repetition: ReplyRepetition | None, call: ToolCall) -> str:
    """Describe a call in a later request."""
    if repetition is None:
        return "not on the tape"
    pair = repetition.of(call)
    if pair is None:
        return ""
    if pair.repetition is None:
        return '<b class="wrong">lost</b>'
    if not pair.differs:
        return '<b class="right">as delivered</b>'
    return f'<b class="wrong">differs</b> {_arguments(pair.repetition.arguments)}'


def _arguments(text: str) -> str:
    return _code(text) if text else "(no bytes)"


def _findings(findings: Iterable[Finding]) -> Iterator[str]:
    found = [_finding(each) for each in findings]
    if found:
        yield "<section><h2>Findings</h2>"
        yield from found
        yield "</section>"


def _finding(finding: Finding) -> str:
    texts = [finding.evidence] if finding.evidence else []
    texts += [*sides(finding), *excluded(finding)]
    evidence = "".join(f"<p>{_code(each)}</p>" for each in texts)
    return (
        f'<article class="{finding.severity}"><h3>{_text(f"{finding.code} {finding.name}")}'
        f" <small>{_text(f'{finding.severity}, {blamed(finding)}')}</small></h3>"
        f"<p>{_text(finding.message)}</p>{evidence}"
        f"<p><strong>Fix:</strong> {_text(finding.hint)}</p>"
        f"<p><small>{_text(place(finding))}</small></p></article>"
    )


def _table(title: str, heads: Iterable[str], rows: list[str], kind: str = "") -> Iterator[str]:
    """Yield a section with a table; nothing without rows."""
    if not rows:
        return
    named = f' class="{kind}"' if kind else ""
    yield f"<section><h2>{title}</h2><table{named}><thead>"
    yield f"<tr>{''.join(f'<th>{_text(head)}</th>' for head in heads)}</tr></thead><tbody>"
    yield from rows
    yield "</tbody></table></section>"


def _row(*cells: str) -> str:
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _code(text: str) -> str:
    return f"<code>{_text(text)}</code>" if text else ""


def _text(text: str) -> str:
    return for_html(escape(text))


# The style of the page above: readable in daylight, at night, and on paper.

STYLE = """\
:root {
  color-scheme: light dark;
  --ink: light-dark(#1c1e21, #e4e6eb);
  --paper: light-dark(#ffffff, #17181a);
  --panel: light-dark(#f4f5f7, #222427);
  --line: light-dark(#d8dbe0, #3a3d42);
  --faint: light-dark(#6a6f76, #9aa0a8);
  --bad: light-dark(#b3261e, #ff8a80);
  --good: light-dark(#1e7b34, #7fd694);
  --wire: light-dark(#1f5fbf, #7fb0ff);
  --app: light-dark(#a15c00, #ffb95c);
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem; color: var(--ink);
  background: var(--paper); font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.2rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1rem; margin: 1.6rem 0 .5rem; }
h3 { font-size: .95rem; margin: 0 0 .3rem; }
header p, small, footer { color: var(--faint); margin: .2rem 0; font-weight: normal; }
code { font: .9em/1.4 ui-monospace, monospace; overflow-wrap: break-word; white-space: pre-wrap; }
td code { overflow-wrap: normal; }
td:last-child code, td:nth-last-child(2) code, p code { overflow-wrap: anywhere; }
.verdict { border: 1px solid var(--line); border-left: .4rem solid var(--faint);
  background: var(--panel); padding: .8rem 1rem; margin: 1rem 0; border-radius: .3rem; }
.verdict h2 { margin: 0; font-size: 1.3rem; }
.verdict h2::first-letter { text-transform: uppercase; }
.verdict h2 span { color: var(--faint); font-weight: normal; }
.verdict p { margin: .5rem 0 0; overflow-wrap: anywhere; }
.verdict.app { border-left-color: var(--app); }
.verdict.model, .verdict.provider, .verdict.gateway, .verdict.transport, .verdict.upstream {
  border-left-color: var(--wire); }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; color: var(--faint); font-weight: normal; font-size: .85rem;
  white-space: nowrap; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .5rem; vertical-align: top;
  overflow-wrap: break-word; }
.timeline { font: .85rem/1.4 ui-monospace, monospace; }
.timeline td:first-child { text-align: right; white-space: nowrap; }
.timeline td:nth-child(4) { overflow-wrap: anywhere; }
.timeline td:nth-child(2) { width: 22%; }
.timeline td:nth-child(3), .timeline tr.recorder td { color: var(--faint); }
.timeline b { color: var(--bad); }
.axis { position: relative; height: 1.2em; border-left: 1px solid var(--line);
  border-right: 1px solid var(--line); }
.axis i { position: absolute; top: .35em; width: .5em; height: .5em; margin-left: -.25em;
  border-radius: 50%; background: var(--faint); }
.axis i.wire { background: var(--wire); }
.axis i.app { background: var(--app); border-radius: 0; }
.axis i.log { background: var(--bad); }
.wrong { color: var(--bad); }
.right { color: var(--good); }
article { border-left: .25rem solid var(--line); padding: .2rem .8rem; margin: .8rem 0; }
article.error { border-left-color: var(--bad); }
article.warning { border-left-color: var(--app); }
article p { margin: .2rem 0; }
footer { margin-top: 2rem; font-size: .85rem; }
@media print { body { max-width: none; } section, article { break-inside: avoid; } }
"""
