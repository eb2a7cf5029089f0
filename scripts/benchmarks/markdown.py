"""Tables as Markdown."""

from collections.abc import Iterable, Sequence


def markdown(rows: Iterable[Sequence[str]]) -> str:
    """`rows`, head and rule included, as lines of a table."""
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
