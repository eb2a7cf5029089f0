"""The table of an application's events, from the names that it uses."""

from collections.abc import Sequence

from deltatape.dialects._choice import Policy
from deltatape.dialects._table import Path, Step, Table, path
from deltatape.dialects._table_calls import CallWhole
from deltatape.dialects._table_steps import Fail, Result, Say, SayWhole, Terminal
from deltatape.model.app_names import AppNames
from deltatape.model.reply import Channel

NAME = "app-events"
_MESSAGES = (path("message"), path("error"), path("error.message"))


def table(names: AppNames) -> Table:
    """The table for an application that uses `names`."""
    content = _paths(names.content)
    meanings: Sequence[tuple[tuple[str, ...], Sequence[Step]]] = (
        (names.error, (Fail(message=(*content, *_MESSAGES)), Terminal(normal=False))),
        (names.done, (SayWhole(text=content), Terminal())),
        (names.tool_result, (Result(id=_paths(names.id), name=_paths(names.name)),)),
        (names.tool_call, (_call(names),)),
        (names.reasoning, (Say(channel=Channel.REASONING, text=content),)),
        (names.text, (Say(channel=Channel.TEXT, text=content),)),
    )
    return Table(
        name=NAME,
        terminator=" or ".join(dict.fromkeys((*names.done, *names.error))),
        policy=Policy(explicit_end=True, ids=False, app=True),
        type_keys=names.type,
        sentinel=True,
        final=True,
        due=frozenset({None}),
        events={kind: steps for kinds, steps in meanings for kind in kinds},
    )


def _call(names: AppNames) -> CallWhole:
    return CallWhole(
        id=_paths(names.id), name=_paths(names.name), arguments=_paths(names.arguments)
    )


def _paths(names: tuple[str, ...]) -> tuple[Path, ...]:
    return tuple(map(path, names))
