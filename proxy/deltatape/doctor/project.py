"""What a project's code and packages mean for recording it."""

from collections.abc import Container, Iterator, Mapping
from pathlib import Path

from deltatape.doctor.hardcoded import Hardcoded, find
from deltatape.doctor.installed import (
    Installed,
    is_node_project,
    node_sdks,
    node_version,
    python_place,
    python_sdks,
)
from deltatape.doctor.literals import Use
from deltatape.doctor.sources import Limits
from deltatape.environment.base_urls import SERVED, SIGNED
from deltatape.render.doctor import Level, Remark
from deltatape.rules.words import count
from deltatape.sdks.table import GENERAL, Ecosystem

_SET = frozenset(name for names in SERVED.values() for name in names)
_MOST_MENTIONS = 10


def sdk_remarks(folder: Path, environment: Mapping[str, str]) -> Iterator[Remark]:
    """The LLM SDKs that a program in `folder` has, and what each reads."""
    place = python_place(folder, environment)
    found = [*python_sdks(place), *node_sdks(folder)]
    yield from (_sdk_remark(each, place.name, environment) for each in found)
    if is_node_project(folder):
        yield from _node_remarks(node_version(folder, environment))
    if all(each.package in GENERAL for each in found):
        where = place.name or "any Python (there is none on PATH)"
        yield Remark(
            level=Level.NOTE,
            text=f"no LLM SDK is installed in {where}, nor in node_modules",
            fix="run this in the folder, and with the environment, in which the app runs",
        )


def _sdk_remark(found: Installed, place: str, environment: Mapping[str, str]) -> Remark:
    sdk = found.sdk
    where = place if found.ecosystem is Ecosystem.PYTHON else "node_modules"
    where = where if found.present else "package.json, not installed"
    name = f"{found.package} {found.version} ({where})"
    data = {
        "package": found.package,
        "version": found.version,
        "ecosystem": found.ecosystem,
        "installed": found.present,
        "reads": list(sdk.reads),
    }
    remark = f"; {sdk.remark}" if sdk.remark else ""
    if not sdk.option:
        return Remark(level=Level.NOTE, text=f"{name}: {sdk.remark}", data=data)
    if not sdk.reads:
        text = f"{name} reads no variable for its base URL"
        fix = f"pass {sdk.option} in code, or use `deltatape mitm`"
        return Remark(level=Level.NOTE, text=text, fix=fix, data=data)
    reads = f"{name} reads {', then '.join(sdk.reads)}"
    if all(each in _SET or (environment.get(each) and each not in SIGNED) for each in sdk.reads):
        text = f"{reads}: set by `deltatape record -- CMD`{remark}"
        return Remark(level=Level.OK, text=text, data=data)
    return Remark(level=Level.NOTE, text=f"{reads}{remark}", data=data)


def _node_remarks(version: str) -> Iterator[Remark]:
    """Whether Node's own fetch sees HTTPS_PROXY, by which traffic past the gateway is noticed."""
    if not version:
        yield Remark(level=Level.NOTE, text="package.json is here, but no node is on PATH")
        return
    major, minor = (int(part) for part in version.split(".")[:2])
    if major >= 24 or (22, 21) <= (major, minor) < (23,):  # noqa: PLR2004 - releases
        yield Remark(level=Level.OK, text=f"node {version}")
        return
    yield Remark(
        level=Level.NOTE,
        text=f"node {version}: its fetch ignores HTTPS_PROXY, so what goes past the gateway is not"
        " noticed",
        fix="Node 22.21 or 24 and later can take it (NODE_USE_ENV_PROXY=1)",
    )


def code_remarks(folder: Path, known: Container[str], limits: Limits) -> Iterator[Remark]:
    """The hard-coded base URLs in the project's code.

    Args:
        folder: the project.
        known: variables that the user has set, in the environment or in `.env` files.
        limits: how much is read.
    """
    search = find(folder, limits, known)
    certain = [each for each in search.found if each.certain]
    # One remark per line is enough where nothing is sure.
    others = list({(e.path, e.line): e for e in search.found if not e.certain}.values())
    yield from (_code_remark(each) for each in (*certain, *others[:_MOST_MENTIONS]))
    if len(others) > _MOST_MENTIONS:
        text = f"{len(others) - _MOST_MENTIONS} more places that only mention a provider's URL"
        yield Remark(level=Level.NOTE, text=text)
    read = f"{count(search.files, 'file')} read"
    if search.stopped:
        yield Remark(
            level=Level.NOTE,
            text=f"{read}; the search stopped {search.stopped}",
            fix="name the app's own folder: deltatape doctor FOLDER",
        )
    elif not certain:
        yield Remark(level=Level.OK, text=f"no base URL is written into the code; {read}")


def _code_remark(found: Hardcoded) -> Remark:
    place = f"{found.path}:{found.line}:{found.column}"
    advice = found.advice
    return Remark(
        level=Level.PROBLEM if found.certain else Level.NOTE,
        text=f"{place} {_what(found)}",
        shown=found.code,
        instead=advice.new if found.certain else "",
        fix=advice.how if found.certain or found.variable else "",
        data={
            "path": found.path,
            "line": found.line,
            "column": found.column,
            "provider": found.provider or None,
            "url": found.url,
            "variable": advice.variable or None,
            "old": advice.old,
        },
    )


def _what(found: Hardcoded) -> str:
    if found.variable:
        return f"goes to {found.host} unless {found.variable} is set"
    if found.use is Use.MENTIONED:
        return f"mentions {found.host}"
    if found.test:
        return f"goes to {found.host}; a test"
    return f"goes to {found.host}, and no variable redirects it"
