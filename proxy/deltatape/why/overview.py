"""What a tape holds, in a few words: who asked, which models, and the worst that was found.

Pure, and in one pass: of each exchange only its digest is kept.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from deltatape.conversation import check_conversation
from deltatape.diagnose.check import check_analysis
from deltatape.diagnose.digest import digest_analysis
from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange, header
from deltatape.model.finding import Finding

_COMMENT = re.compile(r"\([^()]*\)")
_BROWSERS = ("Edg/", "OPR/", "Firefox/", "Chrome/", "Safari/")
"""In the order in which they are told: a browser names those that it resembles, too."""
_MAX_APP = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What a tape holds. `apps` and `models` in the order in which they appear, each once."""

    exchanges: int
    apps: tuple[str, ...]
    models: tuple[str, ...]
    findings: int
    worst: Finding | None


def overview(exchanges: Iterable[Exchange]) -> Overview:
    """The overview of a tape.

    Args:
        exchanges: all of one tape, in any order.
    """
    apps: dict[str, None] = {}
    models: dict[str, None] = {}
    found: list[Finding] = []
    digests = []
    for exchange in exchanges:
        analysis = analyse(exchange)
        found += check_analysis(analysis)
        digests.append((exchange.number, digest_analysis(analysis)))
        model = analysis.asked.model or analysis.reply.model
        models |= {model: None} if model else {}
        app = app_of(header(exchange.request.headers, "user-agent") or b"")
        apps |= {app: None} if app else {}
    digests.sort(key=lambda numbered: numbered[0])
    found += check_conversation(digest for _, digest in digests)
    return Overview(
        exchanges=len(digests),
        apps=tuple(apps),
        models=tuple(models),
        findings=len(found),
        worst=min(found, key=lambda finding: finding.severity.rank, default=None),
    )


def app_of(user_agent: bytes) -> str:
    """A program and its version from its `User-Agent`: `OpenAI/Python 3.54.0`, `curl/7.88.1`.

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
