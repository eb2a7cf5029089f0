"""The rules: how each defect is recognised, why it is harmful, and what to do about it.

A rule is a decorated function in the module of its family, and a page in `docs`; see `rule`. Order
is by code in the groups W, S, T, A, D, C, X: the wire, the stream, the calls, the application's own
events, dead zones, the conversation, deltatape itself.
"""

from typing import Any

from deltatape.rules import (
    answers,
    app_events,
    arguments,
    broken_arguments,
    changed_calls,
    complaints,
    endings,
    errors,
    framing,
    history,
    identity,
    loops,
    loss,
    lost_calls,
    no_answer,
    reasoning,
    repeated_arguments,
    stalls,
    stray_text,
    text_calls,
    tool_choice,
    tool_results,
    tool_servers,
    transport,
)
from deltatape.rules.context import Claim, RuleContext
from deltatape.rules.rule import (
    EXCHANGES,
    FAILURES,
    READ_BACKS,
    SILENCES,
    TURNS,
    Rule,
    SeenSilence,
    SeenTurn,
    Subject,
    ask,
    order,
)

FAMILIES = (
    framing,
    transport,
    endings,
    errors,
    answers,
    stray_text,
    arguments,
    broken_arguments,
    repeated_arguments,
    identity,
    text_calls,
    tool_choice,
    app_events,
    stalls,
    no_answer,
    lost_calls,
    changed_calls,
    reasoning,
    tool_results,
    tool_servers,
    loops,
    complaints,
    history,
    loss,
)
"""The modules whose rules are registered; X001 is in `rule`."""

EXCHANGE_RULES = EXCHANGES.rules
READ_BACK_RULES = READ_BACKS.rules
TURN_RULES = TURNS.rules
SILENCE_RULES = SILENCES.rules
_EVERY: tuple[Rule[Any], ...] = (
    *EXCHANGE_RULES,
    *READ_BACK_RULES,
    *TURN_RULES,
    *SILENCE_RULES,
    *FAILURES.rules,
)
RULES = tuple(sorted(_EVERY, key=order))
"""Everything that can be reported, in the order of reports."""

__all__ = [
    "EXCHANGE_RULES",
    "FAMILIES",
    "READ_BACK_RULES",
    "RULES",
    "SILENCE_RULES",
    "TURN_RULES",
    "Claim",
    "Rule",
    "RuleContext",
    "SeenSilence",
    "SeenTurn",
    "Subject",
    "ask",
]
