"""Summarises a tape: which apps, which models, and the worst finding.

One pass keeps only the digest and the findings of each exchange. The worst finding is the one that
decides the verdict of `why`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from deltatape.diagnose.check import check_analysis
from deltatape.diagnose.digest import digests_of
from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange, header
from deltatape.model.exchange_row import WorstFinding
from deltatape.model.finding import Finding
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.why.survey import survey_of
from deltatape.why.verdict import deciding

_COMMENT = re.compile(r"\([^()]*\)")
_BROWSERS = ("Edg/", "OPR/", "Firefox/", "Chrome/", "Safari/")
"""The first match counts: a browser also names those that it resembles."""
_MAX_APP = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class TapeOverview:
    """A tape's summary. `apps` and `models` are in order of appearance, each once."""

    exchanges: int
    apps: tuple[str, ...]
    models: tuple[str, ...]
    findings: int
    worst: Finding | WorstFinding | None
    """The one on which `why` gives its verdict; None: there is none."""
    worst_object: Mapping[str, object] | None = None
    """How documents show that, where it is not a whole finding."""


def overview(
    exchanges: Iterable[Exchange], settings: Settings = DEFAULTS, *, alone: bool = False
) -> TapeOverview:
    """Summarise a tape.

    Args:
        exchanges: all of one tape, in any order.
        settings: the thresholds.
        alone: whether to judge each for itself, since others of the conversations are missing.
    """
    apps: dict[str, None] = {}
    models: dict[str, None] = {}
    rows = []
    for exchange in exchanges:
        analysis = analyse(exchange, settings.app)
        own = check_analysis(analysis, settings)
        rows.append((exchange.number, digests_of(analysis, settings), own))
        model = analysis.request.model or analysis.reply.model
        models |= {model: None} if model else {}
        app = app_of(header(exchange.request.headers, "user-agent") or b"")
        apps |= {app: None} if app else {}
    rows.sort(key=lambda each: each[0])
    groups = [[each] for each in rows] if alone else [rows]
    surveys = [
        survey_of([each[1] for each in group], [each[2] for each in group], settings)
        for group in groups
        if group
    ]
    found = [deciding(each.evidence(each.worst())) for each in surveys]
    return TapeOverview(
        exchanges=len(rows),
        apps=tuple(apps),
        models=tuple(models),
        findings=sum(each.count() for each in surveys),
        worst=min(filter(None, found), key=lambda each: each.severity.rank, default=None),
    )


def app_of(user_agent: bytes) -> str:
    """Return program and version of a `User-Agent`: `OpenAI/Python 3.54.0`, `curl/7.88.1`.

    "" if it says nothing.
    """
    products = _COMMENT.sub(" ", user_agent.decode("latin-1")).split()
    if not products:
        return ""
    first = products[0]
    if first.startswith("Mozilla/"):
        known = (each for browser in _BROWSERS for each in products if each.startswith(browser))
        first = next(known, first)
    elif len(products) > 1 and products[1][0].isdigit():
        first = f"{first} {products[1]}"
    return first[:_MAX_APP]
