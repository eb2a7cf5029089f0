"""Options: durations, and what every option shows of itself."""

from pathlib import Path

import click
import pytest

from deltatape.cli import COMMANDS, deltatape
from deltatape.cli.options import WrapperCommand, seconds
from helpers.console import called


def options() -> list[tuple[str, click.Option]]:
    context = click.Context(deltatape)
    found = []
    for name in COMMANDS:
        command = deltatape.get_command(context, name)
        assert command is not None
        found += [(name, each) for each in command.params if isinstance(each, click.Option)]
    return found


@pytest.mark.parametrize(
    ("command", "option"), options(), ids=lambda each: getattr(each, "name", each)
)
def test_every_option_has_help_and_a_variable_called_after_it(
    command: str, option: click.Option
) -> None:
    prefix = f"DELTATAPE_{command.upper()}"
    context = click.Context(click.Command(command), auto_envvar_prefix=prefix)
    record = option.get_help_record(context)
    assert record is not None
    long = next(name for name in option.opts if name.startswith("--"))
    assert option.help
    assert f"{prefix}_{long[2:].upper().replace('-', '_')}" in record[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("500ms", 0.5), ("30s", 30.0), ("1.5s", 1.5), ("2m", 120.0), ("0s", 0.0), (None, None)],
)
def test_a_duration_is_a_number_and_a_unit(text: str | None, expected: float | None) -> None:
    option = click.Option(["--hold"])
    assert seconds(click.Context(click.Command("x")), option, text) == expected


@pytest.mark.parametrize(
    "text", ["", "s", "30", "-1s", "1e3s", "1..5s", "1 s", "5h", "inf", "nans", "9" * 400 + "s"]
)
def test_an_invalid_duration_is_reported_with_valid_ones(text: str) -> None:
    option = click.Option(["--hold"])
    with pytest.raises(click.BadParameter, match="use 500ms, 30s or 2m"):
        seconds(click.Context(click.Command("x")), option, text)


@pytest.mark.parametrize(
    "arguments",
    [
        *(("why", ""), ("show", ""), ("check", "x.tape", ""), ("open", ""), ("doctor", "")),
        *(("ls", ""), ("scan", "x.tape", "--out", ""), ("record", "--to", "", "--", "true")),
        *(("redact", "x.tape", "-o", ""), ("why", "T003", "--html", "")),
    ],
    ids=" ".join,
)
def test_an_empty_path_is_refused(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "x.tape").touch()
    result = called(*arguments, folder=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    told = result.stderr.decode().splitlines()[-1]
    assert told.endswith("the path is empty; a variable in the command line may be unset")
    assert [path.name for path in tmp_path.iterdir()] == ["x.tape"]


@pytest.mark.parametrize("url", ["foo://x", "http://127.0.0.1:1/x", "s3://"])
@pytest.mark.parametrize("command", ["why", "ls", "watch", "check", "pack"])
def test_a_url_that_is_not_read_is_shown_as_typed(tmp_path: Path, command: str, url: str) -> None:
    result = called(command, url, folder=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    told = result.stderr.decode()
    assert told.startswith(f"deltatape: {url!r}: not the URL of an object store; use file:///")


def test_what_is_no_number_is_called_so(tmp_path: Path) -> None:
    result = called("mutate", "x.tape", "--as", "all", "-o", "y", "--seed", "x", folder=tmp_path)
    assert result.returncode == 2
    assert result.stderr.decode().endswith("'--seed': 'x' is not a valid integer.\n")


@click.command("wrap", cls=WrapperCommand)
@click.option("--own", default="")
@click.pass_context
def wrap(ctx: click.Context, own: str) -> tuple[str, tuple[str, ...]]:
    """Give back what was understood."""
    return own, WrapperCommand.command_of(ctx)


@pytest.mark.parametrize(
    ("arguments", "understood"),
    [
        ([], ("", ())),
        (["--own", "1"], ("1", ())),
        (["--own", "1", "--", "app", "--own", "2"], ("1", ("app", "--own", "2"))),
        (["--", "a", "--", "b"], ("", ("a", "--", "b"))),
    ],
)
def test_what_follows_the_first_dashes_is_the_command(
    arguments: list[str], understood: tuple[str, tuple[str, ...]]
) -> None:
    assert wrap.main(arguments, standalone_mode=False) == understood


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--"], "no command after --"),
        (["app"], "put -- before the command: wrap -- app$"),
        (["--own", "x", "app", "y"], "put -- before the command: wrap --own x -- app y$"),
        (["app", "--", "y"], "unexpected extra argument"),
    ],
)
def test_a_command_needs_dashes_and_dashes_a_command(arguments: list[str], problem: str) -> None:
    with pytest.raises(click.UsageError, match=problem):
        wrap.main(arguments, prog_name="wrap", standalone_mode=False)


def test_the_usage_shows_where_the_command_goes() -> None:
    assert wrap.get_usage(click.Context(wrap)).endswith("[OPTIONS] [-- CMD [ARG]...]")


def required() -> list[tuple[str, click.Argument]]:
    context = click.Context(deltatape)
    commands = ((name, deltatape.get_command(context, name)) for name in COMMANDS)
    return [
        (name, each)
        for name, command in commands
        if command is not None
        for each in command.params
        if isinstance(each, click.Argument) and each.required
    ]


@pytest.mark.parametrize(
    ("command", "argument"), required(), ids=lambda each: getattr(each, "name", each)
)
def test_the_usage_has_no_brackets_around_what_is_required(
    command: str, argument: click.Argument
) -> None:
    shown = argument.make_metavar(click.Context(click.Command(command)))
    assert not shown.startswith("[")
