"""Compare two exchanges, event by event and call by call.

`compare_exchanges` compares two analyses; `first_damage` finds, among the pairs of neighbours on
the way from a provider to an application, the first that damaged a call.
"""

from deltatape.compare.comparable_events import VOLATILE
from deltatape.compare.compare import compare_exchanges, first_damage
from deltatape.compare.values import (
    CallChange,
    CallDamage,
    ChangeKind,
    Comparison,
    ContextPart,
    EventChange,
    SpacingDifference,
)

__all__ = [
    "VOLATILE",
    "CallChange",
    "CallDamage",
    "ChangeKind",
    "Comparison",
    "ContextPart",
    "EventChange",
    "SpacingDifference",
    "compare_exchanges",
    "first_damage",
]
