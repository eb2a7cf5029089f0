"""Writes docs/clients-tested.md from the results of the last runs."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from generated import table

from client_runs.programs import Program
from client_runs.provider import CUT, EMPTY, SPLIT

Json = Mapping[str, Any]

HEAD = """\
# Coding agents and frameworks, tested

Each program below ran by itself, recorded as [clients.md](clients.md) says, against a scripted
provider on loopback: the model calls a tool once, then says a sentence. No real provider was asked;
where nothing leads out, the programs' own telemetry fails, and does not matter.

- *recorded*: the run ended well, `deltatape show --calls` rebuilds the call as it was sent, and
  `deltatape check` finds nothing. Requests besides the two of the conversation are the program's
  own, for titles and the like.
- *replayed twice*: `deltatape replay` with the options of clients.md answered every request, twice,
  with the same end.
- *a week later*: the same with the clock a week later, in another folder, as another user. Where a
  program's clock cannot be changed (a static one), the dates in the tape's requests are set back.

## Healthy

"""
BROKEN = """
## With broken providers

The same run with a provider that is broken in one of three ways:

- *empty arguments*: the call has none, though its tool requires some.
- *cut in arguments*: the connection closes after half of the arguments, at each attempt.
- *split characters*: each character beyond ASCII is cut over two reads, which is healthy. Programs
  that decode each read alone break here.

Whom `deltatape why` names comes first: *upstream* is the provider or its model, *transport* the
network between. Then what the program does: how often it asks, what it tells its model, how it
ends.

"""
END = """
This page is written by `scripts/test-clients` from its last run of each program, which
`tests/clients/clients-tested.yaml` holds; `scripts/test-clients NAME` runs one again.
"""
_OLDER = ", of a tape that is a year older"
"""Where the program's clock cannot be changed."""
WAYS = {EMPTY: "empty arguments", CUT: "cut in arguments", SPLIT: "split characters"}


def page(programs: tuple[Program, ...], results: Json) -> str:
    """The page, of the programs that ran."""
    return HEAD + "".join(_parts(programs, results)) + END


def _parts(programs: tuple[Program, ...], results: Json) -> Iterator[str]:
    known = [(each, results[each.name]) for each in programs if each.name in results]
    ran = [(each, found) for each, found in known if "healthy" in found]
    head = ("", "packages", "recorded", "replayed twice", "a week later")
    yield table(head, [_healthy(program, found) for program, found in ran])
    yield from (f"\n- {each.shown}: {each.remark}" for each, _ in ran if each.remark)
    yield from (
        f"\n- {each.shown}: not run, it does not install: {found['not installed']}"
        for each, found in known
        if "not installed" in found
    )
    yield "\n" if any(each.remark for each, _ in known) or len(ran) < len(known) else ""
    yield BROKEN
    rows = [
        (
            program.shown,
            *(_broken(found["broken"][way]) for way in WAYS),
        )
        for program, found in ran
    ]
    yield table(("", *WAYS.values()), rows)


def _healthy(program: Program, found: Json) -> tuple[str, ...]:
    packages = ", ".join(f"{each}" for each in found["packages"])
    replays = found.get("replays") or []
    later = found.get("later") or {"exit": None}
    return (
        program.shown,
        packages,
        _recorded(program, found["healthy"]),
        _replayed(found["healthy"], replays),
        _replayed(found["healthy"], [later]) + _OLDER * (later.get("clock") == "tape"),
    )


def is_recorded(program: Program, healthy: Json) -> bool:
    """Whether a healthy run was recorded as it should be."""
    rebuilt = healthy.get("rebuilt") or not program.tool
    return healthy["exit"] == 0 and bool(rebuilt) and not healthy.get("codes")


def is_replayed(healthy: Json, replays: list[Json]) -> bool:
    """Whether every replay played everything, and ended as the recording did."""
    names = ("exit", "missed", "unplayed", "answered")
    good = [healthy["exit"], [], [], healthy.get("answered")]
    return bool(replays) and all([each.get(name) for name in names] == good for each in replays)


def _recorded(program: Program, healthy: Json) -> str:
    requests = _count(healthy["exchanges"], "request")
    if is_recorded(program, healthy):
        return f"yes, {requests}"
    problems = [
        *([f"exit code {healthy['exit']}"] if healthy["exit"] else []),
        *(["another call"] if program.tool and not healthy.get("rebuilt") else []),
        *healthy.get("codes", ()),
    ]
    return f"**{', '.join(map(str, problems))}**, {requests}"


def _replayed(healthy: Json, replays: list[Json]) -> str:
    if is_replayed(healthy, replays):
        return "yes"
    for each in replays:
        if each.get("missed"):
            return f"**misses**: {', '.join(map(_code, each['missed']))}"
        if each.get("unplayed"):
            return f"**{_count(len(each['unplayed']), 'exchange')} not played**"
        if problem := each.get("problem"):
            return f"**no**: {_code(problem)}"
    return "**ends otherwise**"


def _broken(found: Json) -> str:
    """Who is named, and what the program did."""
    verdict = found.get("verdict", "not taped")
    code = f" ({found['code']})" if found.get("code") else ""
    return f"*{verdict}*{code}: {_deeds(found)}"


def _deeds(found: Json) -> str:
    deeds = []
    if found["attempts"] > 1:
        deeds.append(f"asks {found['attempts']} times")
    if found["told"]:
        deeds.append(_told(found["told"]))
    if found["exit"] is None:
        deeds.append("had not ended after four minutes")
    elif found["exit"]:
        deeds.append(f"exit code {found['exit']}, {_code(found['printed'])}")
    elif found.get("answered"):
        deeds.append("ends well")
    else:
        deeds.append(f"exit code 0, {_code(found['printed'])}")
    return "; ".join(deeds)


_RIGHT = ("Grüße aus 東京", json.dumps("Grüße aus 東京")[1:-1])
"""What the tool prints, as it is and as JSON of ASCII alone."""


def _told(told: str) -> str:
    if any(spelling in told for spelling in _RIGHT):
        return "runs the tool with the right characters"
    if "\ufffd" in told:
        return "runs the tool with U+FFFD"
    return f"tells the model {_code(told)}"


def _code(printed: str) -> str:
    """What was printed, as code in a cell of a table."""
    if not printed:
        return "prints nothing"
    fence = "``" if "`" in printed else "`"
    return f"{fence}{printed}{fence}".replace("|", "\\|")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
