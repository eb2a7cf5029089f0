"""What a response shows of its dialect, said in a line."""

from deltatape.dialects import Hints
from deltatape.model.stream import Format


def hints(
    *first: dict[str, object],
    form: Format = Format.SSE,
    types: tuple[str, ...] = (),
    headers: dict[str, str] | None = None,
) -> Hints:
    """The hints of a response whose first events carry `first` and have `types`."""
    return Hints(format=form, headers=headers or {}, first=first, types=types)
