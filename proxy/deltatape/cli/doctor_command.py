"""`deltatape doctor`: checks machine, environment and project before a recording."""

import importlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import click

from deltatape.cli.options import FORMAT, PathArgument
from deltatape.cli.terminal import show, write
from deltatape.doctor.environment import (
    client_remarks,
    known_settings,
    machine_remarks,
    surroundings_remarks,
)
from deltatape.doctor.project import code_remarks, sdk_remarks
from deltatape.doctor.sources import Limits
from deltatape.errors import UsageError
from deltatape.gateway.routes import parse_upstream
from deltatape.render.doctor import (
    DoctorRemark,
    RemarkLevel,
    Section,
    doctor_json,
    doctor_lines,
    problems,
)
from deltatape.render.lines import WIDTH
from deltatape.settings.defaults import defaults
from deltatape.settings.file import NAME
from deltatape.settings.settings import load


@click.command("doctor")
@click.argument(
    "folder", cls=PathArgument, default=".", type=click.Path(path_type=Path), metavar="[FOLDER]"
)
@FORMAT
def command(*, folder: Path, format: str) -> int:  # noqa: A002 - the option's name
    """Look for what would keep an app's traffic from the recorder, and say what to change.

    Checks the machine, the environment, coding agents, and the SDKs and the code of the project in
    FOLDER (default: here), also for base URLs that are written into it. Changes nothing and
    connects to no other machine. Exit code: 1 for problems, 2 if it cannot check.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: not a folder; the project's own folder is wanted")
    sections = _sections(folder)
    if format == "json":
        write(doctor_json(sections))
    else:
        show(doctor_lines(sections, shutil.get_terminal_size((WIDTH, 24)).columns))
    return int(problems(sections) > 0)


def _sections(folder: Path) -> tuple[Section, ...]:
    environment = dict(os.environ)
    known = {name for name, each in known_settings(folder, environment).items() if each.value}
    return (
        Section(
            title="machine",
            remarks=(*machine_remarks(folder), _settings_remark(folder, environment)),
        ),
        Section(title="environment", remarks=tuple(surroundings_remarks(folder, environment))),
        Section(title="clients", remarks=tuple(client_remarks(folder, environment))),
        Section(title="sdks", remarks=tuple(sdk_remarks(folder, environment))),
        Section(title="code", remarks=tuple(code_remarks(folder, known, Limits()))),
    )


def _settings_remark(folder: Path, environment: Mapping[str, str]) -> DoctorRemark:
    """Check the settings file, including sections of other commands."""
    from deltatape.cli import COMMANDS  # noqa: PLC0415 - it loads this module

    start = folder.resolve()
    try:
        settings = load(start, environment, COMMANDS)
        if settings is None:
            return DoctorRemark(level=RemarkLevel.OK, text=f"no {NAME}: defaults hold")
        settings.rules()
        for name in settings.sections:
            module = importlib.import_module(f"deltatape.cli.{name}_command")
            defaults(settings, module.command)
        for name, url in settings.upstreams.items():
            with settings.at_upstream(name):
                parse_upstream(f"{name}={url}")
    except UsageError as error:
        return DoctorRemark(level=RemarkLevel.PROBLEM, text=str(error), fix=f"correct {NAME}")
    path = settings.path
    shown = path.relative_to(start) if path.is_relative_to(start) else path
    return DoctorRemark(level=RemarkLevel.OK, text=f"{shown} is valid")
