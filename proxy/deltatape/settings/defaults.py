"""Settings as click defaults: below environment variables, which are below flags.

Strategy: click's `default_map` implements the precedence. Each value of a section is also parsed
here as its option would parse the flag, so that mistakes are reported with their place in the file,
even if a flag overrides the value.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import click

from deltatape.errors import DeltatapeError, UsageError
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.settings.file import VARIABLE, Scalar, Value, texts_of
from deltatape.settings.settings import SettingsFile, load

_RUNS = (("record", "on-finding"), ("torture", "oracle"), ("shrink", "oracle"))
"""Options whose values are run."""
_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}

Default: TypeAlias = str | bool | tuple[str, ...]


def use_settings(ctx: click.Context, command: click.Command, arguments: Sequence[str]) -> None:
    """Use the settings file for a command's defaults, and set `ctx.obj` to the `SettingsFile`.

    Args:
        ctx: the group's context.
        command: the command to run.
        arguments: its command line; `--help` works even with a damaged file.

    Raises:
        UsageError: the file is wrong; the message names the place.
    """
    assert isinstance(ctx.command, click.Group)
    try:
        settings = load(Path.cwd(), os.environ, ctx.command.list_commands(ctx))
        if settings is not None and command.name is not None:
            _refuse_found_commands(settings, os.environ)
            ctx.default_map = {command.name: defaults(settings, command)}
            ctx.obj = settings
    except FileNotFoundError:  # the working directory is gone
        pass
    except UsageError:
        if not _asks_for_help(ctx, arguments):
            raise


def _refuse_found_commands(settings: SettingsFile, environment: Mapping[str, str]) -> None:
    """Refuse commands in a file from a cloned repository: it must not run its author's programs."""
    for command, option in _RUNS:
        entry = settings.sections.get(command, {}).get(option)
        if entry is not None and not environment.get(VARIABLE):
            raise entry.key.refuse(
                f"{option} runs a command, so it counts only in a file that you name yourself:"
                f" {VARIABLE}={settings.path}; or give it as --{option}"
            )


def current_settings() -> SettingsFile | None:
    """Return the settings of the running command; None without a file."""
    ctx = click.get_current_context(silent=True)
    return ctx.find_object(SettingsFile) if ctx is not None else None


def current_rules() -> Settings:
    """Return the rules' thresholds for the running command."""
    settings = current_settings()
    return DEFAULTS if settings is None else settings.rules()


def defaults(settings: SettingsFile, command: click.Command) -> Mapping[str, Default]:
    """Return a command's section, by parameter name.

    Raises:
        UsageError: the command has no such option, or the option rejects the value.
    """
    section = command.name or ""
    options = _options(command)
    ctx = click.Context(command, info_name=section)
    found: dict[str, Default] = {}
    for key, entry in settings.sections.get(section, {}).items():
        if key not in options:
            raise entry.key.unknown(key, options, f"option of deltatape {section}")
        option = options[key]
        default = _default(f"{section}.{key}", option, entry.value, settings.path.parent)
        try:
            with ctx:
                option.process_value(ctx, default)
        except click.ClickException as error:
            raise entry.value.place.refuse(f"{section}.{key}: {error.message}") from None
        except DeltatapeError as error:
            raise entry.value.place.refuse(str(error)) from None
        assert option.name is not None
        found[option.name] = default
    return found


def located(ctx: click.Context, error: UsageError) -> UsageError:
    """Add the place in the settings file to an error about a value from it."""
    settings, name = ctx.obj, ctx.invoked_subcommand
    if isinstance(settings, SettingsFile):
        for key, entry in settings.sections.get(name or "", {}).items():
            texts = texts_of(entry.value) or ()
            if str(error).startswith(f"--{key} ") and any(text in str(error) for text in texts):
                return UsageError(f"{error} (set at {entry.value.place})")
    return error


def _asks_for_help(ctx: click.Context, arguments: Sequence[str]) -> bool:
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return any(name in ours for name in ctx.help_option_names)


def _options(command: click.Command) -> Mapping[str, click.Option]:
    """Return the options by their names without dashes."""
    return {
        name.removeprefix("--"): option
        for option in command.params
        if isinstance(option, click.Option) and option.expose_value
        for name in option.opts
        if name.startswith("--")
    }


def _default(what: str, option: click.Option, value: Value, folder: Path) -> Default:
    texts = texts_of(value)
    if option.multiple:
        if texts is None:
            raise value.place.refuse(f"{what}: a value or a list of values is accepted")
        return tuple(_path(option, text, folder) for text in texts)
    if texts is None or not isinstance(value, Scalar):
        raise value.place.refuse(f"{what}: one value is accepted")
    if option.is_flag:
        flag = _FLAGS.get(value.text.lower())
        if flag is None:
            raise value.place.refuse(f"{what}: {value.text!a}: true or false is accepted")
        return flag
    return _path(option, value.text, folder)


def _path(option: click.Option, text: str, folder: Path) -> str:
    """Resolve a path relative to the settings file; `~` is the home folder."""
    if not isinstance(option.type, click.Path) or text == "-":
        return text
    path = Path(os.path.expanduser(text))  # noqa: PTH111 - leaves `~nobody` as it is
    return str(path if folder == Path.cwd() else folder / path)
