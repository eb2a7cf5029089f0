"""Check how a project's code and packages affect recording."""

import json
import os
import re
import shutil
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from deltatape.doctor.hardcoded import Hardcoded, find
from deltatape.doctor.programs import ask
from deltatape.doctor.sources import Limits, UrlUse
from deltatape.environment.variables import SERVED, SIGNED
from deltatape.printable import count
from deltatape.render.doctor import DoctorRemark, RemarkLevel
from deltatape.sdks.table import GENERAL, SDKS, Ecosystem, Sdk, sdk_of, version_numbers

_SET = frozenset(name for names in SERVED.values() for name in names)
_MOST_MENTIONS = 10


# Which LLM SDKs a project has, and in which version.
#
# Strategy: only read folders and metadata; import and run nothing of the project. For Python, look
# in the environment that would start the project: VIRTUAL_ENV, else one in its folder, else that of
# the `python3` on PATH, which is asked where it keeps packages. For Node, look in `node_modules` of
# the folder or one above; the packages in `package.json` that are not installed count, too.

_METADATA = re.compile(r"(?P<name>[A-Za-z0-9._]+)-(?P<version>[^-]+)(?:-[^/]*)?\.(?:dist|egg)-info")
_ENVIRONMENTS = (".venv", "venv", "env", ".env")
_MAX_JSON_BYTES = 1024 * 1024
_LIMIT_S = 3.0
_PATHS = "import site; print(*site.getsitepackages(), site.getusersitepackages(), sep='\\n')"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledSdk:
    """An SDK that a project has. `version`: "" if unknown."""

    ecosystem: Ecosystem
    package: str
    version: str
    present: bool
    """False: named in package.json, but not installed."""
    sdk: Sdk


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonPlace:
    """Where a project's Python packages are. `name`: as the user would call it; "" for none."""

    name: str
    folders: tuple[Path, ...]


def python_place(folder: Path, environment: Mapping[str, str]) -> PythonPlace:
    """Return the Python environment of a program started in `folder`."""
    active = environment.get("VIRTUAL_ENV")
    for candidate in (*([Path(active)] if active else []), *(folder / e for e in _ENVIRONMENTS)):
        folders = tuple(sorted(candidate.glob("lib*/python3*/site-packages")))
        if folders and (candidate / "pyvenv.cfg").is_file():
            name = candidate.name if candidate.parent == folder else str(candidate)
            return PythonPlace(name=name, folders=folders)
    return _python_on_path(folder, environment)


def _python_on_path(folder: Path, environment: Mapping[str, str]) -> PythonPlace:
    """Return the packages of `python3` on PATH, run isolated from the project."""
    program = shutil.which("python3", path=environment.get("PATH"))
    # Run in the folder: version managers choose the Python by it.
    command = (program or "", "-I", "-c", _PATHS)
    answer = ask(command, folder, environment, _LIMIT_S) if program else None
    if program is None or answer is None:
        return PythonPlace(name="", folders=())
    lines = dict.fromkeys(os.fsdecode(answer.stdout).splitlines())
    return PythonPlace(name=program, folders=tuple(Path(line) for line in lines if line))


def python_sdks(place: PythonPlace) -> tuple[InstalledSdk, ...]:
    """Return the LLM SDKs in a Python environment, by name."""
    found = {}
    for folder in place.folders:
        for name, version in _distributions(folder):
            sdk = sdk_of(Ecosystem.PYTHON, name, version)
            if sdk is not None:
                found[name] = InstalledSdk(
                    ecosystem=Ecosystem.PYTHON,
                    package=name,
                    version=version,
                    present=True,
                    sdk=sdk,
                )
    return tuple(found[name] for name in sorted(found))


def _distributions(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield normalised names and versions of installed packages, from the metadata's file names."""
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 - names are all that is needed
    except OSError:
        return
    for name in names:
        match = _METADATA.fullmatch(name)
        if match is not None:
            yield re.sub(r"[-_.]+", "-", match["name"]).lower(), match["version"]


def node_sdks(folder: Path) -> tuple[InstalledSdk, ...]:
    """Return the LLM SDKs of a Node program in `folder`, by name."""
    dependencies = _dependencies(folder)
    found = []
    for name in sorted(SDKS[Ecosystem.NODE]):
        version, present = _version(folder, name), True
        if not version:
            version, present = dependencies.get(name, ""), False
        sdk = sdk_of(Ecosystem.NODE, name, version) if version else None
        if sdk is not None:
            found.append(
                InstalledSdk(
                    ecosystem=Ecosystem.NODE,
                    package=name,
                    version=version,
                    present=present,
                    sdk=sdk,
                )
            )
    return tuple(found)


def is_node_project(folder: Path) -> bool:
    """Return whether the folder has Node programs."""
    return (folder / "package.json").is_file()


def _dependencies(folder: Path) -> dict[str, str]:
    """Return the dependencies in package.json, with their ranges."""
    package = _json(folder / "package.json")
    found: dict[str, str] = {}
    for group in ("devDependencies", "dependencies"):
        entries = package.get(group)
        if isinstance(entries, dict):
            found |= {str(k): v for k, v in entries.items() if isinstance(v, str)}
    return found


def _version(folder: Path, package: str) -> str:
    """Return the version in the nearest `node_modules`, as Node finds it; "" if there is none."""
    for place in (folder, *folder.parents):
        version = _json(place / "node_modules" / package / "package.json").get("version")
        if isinstance(version, str):
            return version
    return ""


def _json(path: Path) -> dict[str, object]:
    """Return the object in a file; {} if it is missing, too large, or no object."""
    try:
        if not path.is_file() or path.stat().st_size > _MAX_JSON_BYTES:
            return {}
        content: object = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return {str(k): v for k, v in content.items()} if isinstance(content, dict) else {}


def node_version(folder: Path, environment: Mapping[str, str]) -> str:
    """Return the version of `node` on PATH, such as `20.20.2`; "" if there is none."""
    program = shutil.which("node", path=environment.get("PATH"))
    if program is None:
        return ""
    variables = {k: v for k, v in environment.items() if k != "NODE_OPTIONS"}
    answer = ask((program, "--version"), folder, variables, _LIMIT_S)
    match = re.match(rb"v([0-9.]{1,20})\s", answer.stdout) if answer else None
    return match[1].decode() if match else ""


def sdk_remarks(folder: Path, environment: Mapping[str, str]) -> Iterator[DoctorRemark]:
    """Yield the LLM SDKs of a program in `folder`, and the variables that each reads."""
    place = python_place(folder, environment)
    found = [*python_sdks(place), *node_sdks(folder)]
    yield from (_sdk_remark(each, place.name, environment) for each in found)
    if is_node_project(folder):
        yield from _node_remarks(node_version(folder, environment))
    if all(each.package in GENERAL for each in found):
        where = place.name or "any Python (there is none on PATH)"
        yield DoctorRemark(
            level=RemarkLevel.NOTE,
            text=f"no LLM SDK is installed in {where}, nor in node_modules",
            fix="run this in the folder, and with the environment, in which the app runs",
        )


def _sdk_remark(found: InstalledSdk, place: str, environment: Mapping[str, str]) -> DoctorRemark:
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
        return DoctorRemark(level=RemarkLevel.NOTE, text=f"{name}: {sdk.remark}", data=data)
    if not sdk.reads:
        text = f"{name} reads no variable for its base URL"
        fix = f"pass {sdk.option} in code, or use `deltatape mitm`"
        return DoctorRemark(level=RemarkLevel.NOTE, text=text, fix=fix, data=data)
    reads = f"{name} reads {', then '.join(sdk.reads)}"
    if all(each in _SET or (environment.get(each) and each not in SIGNED) for each in sdk.reads):
        text = f"{reads}: set by `deltatape record -- CMD`{remark}"
        return DoctorRemark(level=RemarkLevel.OK, text=text, data=data)
    return DoctorRemark(level=RemarkLevel.NOTE, text=f"{reads}{remark}", data=data)


def _node_remarks(version: str) -> Iterator[DoctorRemark]:
    """Yield a remark if Node's own fetch ignores HTTPS_PROXY, which reveals bypassing traffic."""
    if not version:
        yield DoctorRemark(
            level=RemarkLevel.NOTE, text="package.json is here, but no node is on PATH"
        )
        return
    numbers = version_numbers(version)
    if numbers >= (24,) or (22, 21) <= numbers < (23,):
        yield DoctorRemark(level=RemarkLevel.OK, text=f"node {version}")
        return
    yield DoctorRemark(
        level=RemarkLevel.NOTE,
        text=f"node {version}: its fetch ignores HTTPS_PROXY, so deltatape does not see requests"
        " that it sends directly to a provider",
        fix="use Node 22.21, or 24 or later, which read it (deltatape sets NODE_USE_ENV_PROXY=1)",
    )


def code_remarks(folder: Path, known: Container[str], limits: Limits) -> Iterator[DoctorRemark]:
    """Yield the hard-coded base URLs in the project's code.

    Args:
        folder: the project.
        known: variables that the user has set, in the environment or in `.env` files.
        limits: how much is read.
    """
    search = find(folder, limits, known)
    certain = [each for each in search.found if each.certain]
    # Uncertain ones get at most one remark per line.
    others = list({(e.path, e.line): e for e in search.found if not e.certain}.values())
    yield from (_code_remark(each) for each in (*certain, *others[:_MOST_MENTIONS]))
    if len(others) > _MOST_MENTIONS:
        text = f"{len(others) - _MOST_MENTIONS} more places that only mention a provider's URL"
        yield DoctorRemark(level=RemarkLevel.NOTE, text=text)
    read = f"{count(search.files, 'file')} read"
    if search.stopped:
        yield DoctorRemark(
            level=RemarkLevel.NOTE,
            text=f"{read}; the search stopped {search.stopped}",
            fix="name the app's own folder: deltatape doctor FOLDER",
        )
    elif not certain:
        yield DoctorRemark(level=RemarkLevel.OK, text=f"no hard-coded base URL; {read}")


def _code_remark(found: Hardcoded) -> DoctorRemark:
    place = f"{found.path}:{found.line}:{found.column}"
    advice = found.advice
    return DoctorRemark(
        level=RemarkLevel.PROBLEM if found.certain else RemarkLevel.NOTE,
        text=f"{place} {_summary_of(found)}",
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


def _summary_of(found: Hardcoded) -> str:
    if found.variable:
        return f"goes to {found.host} unless {found.variable} is set"
    if found.use is UrlUse.MENTIONED:
        return f"mentions {found.host}"
    if found.test:
        return f"goes to {found.host}; a test"
    return f"goes to {found.host}, and no variable redirects it"
