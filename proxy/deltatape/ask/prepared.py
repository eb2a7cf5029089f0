"""The prepared questions, each a file of SQL that begins with the question.

    -- Which findings are there, and how many exchanges have them?
    --
    -- More about it, for docs/ask.md.
    -- plot: exchanges
    SELECT ...

The file has the name of the question. `plot` names the column that a chart shows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from deltatape.errors import UsageError, did_you_mean

_SUFFIX = ".sql"
_PLOT = "plot:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A prepared question."""

    name: str
    title: str
    """The question in words."""
    about: str
    """More about it; "" if there is nothing to add."""
    plot: str
    """The column that a chart shows."""
    sql: str


@cache
def questions() -> Mapping[str, Question]:
    """Return the prepared questions by their names, in alphabetical order."""
    folder = files(__package__) / "questions"
    found = sorted(each.name for each in folder.iterdir() if each.name.endswith(_SUFFIX))
    return MappingProxyType(
        {
            name.removesuffix(_SUFFIX): _read(
                name.removesuffix(_SUFFIX), (folder / name).read_text("utf-8")
            )
            for name in found
        }
    )


def question(name: str) -> Question:
    """Return a prepared question.

    Raises:
        UsageError: there is none of that name.
    """
    known = questions()
    if name not in known:
        near = did_you_mean(name, known) or f" There are: {', '.join(known)}."
        raise UsageError(f"{name!r}: no such question.{near} --sql asks any other")
    return known[name]


def _read(name: str, text: str) -> Question:
    lines = text.splitlines()
    head = [line.removeprefix("--").strip() for line in lines if line.startswith("--")]
    (plot,) = [line.removeprefix(_PLOT).strip() for line in head if line.startswith(_PLOT)]
    title, *about = [line for line in head if not line.startswith(_PLOT)]
    sql = "\n".join(line for line in lines if not line.startswith("--"))
    return Question(
        name=name, title=title, about=" ".join(about).strip(), plot=plot, sql=sql.strip() + "\n"
    )
