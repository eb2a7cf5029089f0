"""Options: durations, and what every option shows of itself."""

import click
import pytest

from deltatape.cli import COMMANDS, deltatape
from deltatape.cli.options import seconds


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
def test_what_is_no_duration_is_told_with_what_would_be(text: str) -> None:
    option = click.Option(["--hold"])
    with pytest.raises(click.BadParameter, match="500ms, 30s or 2m are"):
        seconds(click.Context(click.Command("x")), option, text)
