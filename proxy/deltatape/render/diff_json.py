"""`diff --format json`. Schema: docs/diff.schema.json.

The keys are a contract: they are added to, never renamed.
"""

from collections.abc import Iterable, Sequence

from deltatape.compare import CallChange, Change, Comparison
from deltatape.compare.values import Framed
from deltatape.diagnose.rebuild import Analysis
from deltatape.match.difference import Difference
from deltatape.model.reply import ToolCall
from deltatape.render.diff import Hop
from deltatape.render.json_document import VERSION, inert_json


def diff_json(hops: Sequence[Hop], damaged: int | None) -> str:
    """All hops, in order.

    Args:
        hops: each from one side to the next.
        damaged: the place of the first that damaged a call.
    """
    document = {
        "version": VERSION,
        "equal": all(hop.comparison.equal for hop in hops),
        "damaged": damaged,
        "hops": [_hop(hop) for hop in hops],
    }
    return inert_json(document) + "\n"


def _hop(hop: Hop) -> dict[str, object]:
    comparison: Comparison = hop.comparison
    return {
        "left": _side(hop.left, comparison.left),
        "right": _side(hop.right, comparison.right),
        "equal": comparison.equal,
        "compared": "events" if comparison.by_event else "content",
        "calls": [_call_change(call) for call in comparison.calls],
        "reply": _differences(comparison.reply),
        "framing": [_framed(framed) for framed in comparison.framing],
        "ignored": [{"path": path, "events": number} for path, number in comparison.volatile],
        "changes": [_change(change) for change in comparison.changes],
    }


def _side(name: str, side: Analysis) -> dict[str, object]:
    return {
        "name": name,
        "exchange": side.exchange.number,
        "id": side.exchange.id,
        "dialect": side.reply.dialect,
        "events": len(side.stream.events),
    }


def _call_change(call: CallChange) -> dict[str, object]:
    return {
        "damage": call.damage,
        "choice": call.choice,
        "left": _call(call.left),
        "right": _call(call.right),
        "differences": _differences(call.differences),
        "cause": None if call.cause is None else _change(call.cause),
    }


def _call(call: ToolCall | None) -> dict[str, object] | None:
    if call is None:
        return None
    return {
        "index": call.index,
        "id": call.id,
        "name": call.name,
        "kind": call.kind,
        "arguments": call.arguments,
        "status": call.status,
    }


def _change(change: Change) -> dict[str, object]:
    return {
        "kind": change.kind,
        "left": list(change.left),
        "right": list(change.right),
        "part": change.part or None,
        "differences": _differences(change.differences),
    }


def _differences(differences: Iterable[Difference]) -> list[dict[str, str]]:
    return [
        {"path": each.path, "left": each.recorded, "right": each.received} for each in differences
    ]


def _framed(framed: Framed) -> dict[str, object]:
    return {
        "what": framed.what,
        "events": None if framed.event is None else framed.count,
        "left": framed.left,
        "right": framed.right,
        "first": None if framed.event is None else list(framed.event),
    }
