"""Two exchanges side by side: what became of each event, and of each call.

`compare_exchanges` compares two analyses; `first_damage` finds, among the pairs of neighbours on
the way from a provider to an application, the first that damaged a call.
"""

from deltatape.compare.compare import compare_exchanges, first_damage
from deltatape.compare.values import CallChange, Change, Comparison, Damage, Kind, Spacing
from deltatape.compare.volatile import VOLATILE

__all__ = [
    "VOLATILE",
    "CallChange",
    "Change",
    "Comparison",
    "Damage",
    "Kind",
    "Spacing",
    "compare_exchanges",
    "first_damage",
]
