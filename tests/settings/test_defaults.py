import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
import pytest

from deltatape.cli import COMMANDS, Commands
from deltatape.cli.options import option, seconds
from deltatape.errors import UsageError
from deltatape.model.app_names import CONTRACT
from deltatape.model.rule_settings import DEFAULTS
from deltatape.settings.defaults import current_settings, defaults, located, use_settings
from deltatape.settings.settings import read
from deltatape.settings.thresholds import FIELDS
from helpers.console import called as deltatape_called

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "settings.md"


class Group(click.Group):
    """As the group of deltatape."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            use_settings(ctx, command, rest)
        return name, command, rest

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except UsageError as error:
            raise located(ctx, error) from None


@click.group(cls=Group, context_settings={"auto_envvar_prefix": "DELTATAPE"})
def group() -> None:
    """A program."""


@group.command("run")
@click.argument("words", nargs=-1)
@option("--listen", default="here", help="...")
@option("--grace", default="5s", callback=seconds, help="...")
@option("--to", default="tapes", type=click.Path(path_type=Path), help="...")
@option("--upstream", multiple=True, help="...")
@option("--mode", type=click.Choice(["a", "b"]), default="a", help="...")
@option("--strict/--no-strict", help="...")
@option("--max-size", type=int, default=1, help="...")
def run(**values: object) -> dict[str, object]:
    """A command."""
    if values["listen"] == "nowhere":
        raise UsageError("--listen 'nowhere': not an address")
    return {**values, "settings": current_settings()}


def called(arguments: Sequence[str]) -> dict[str, object]:
    result: object = group.main(list(arguments), prog_name="x", standalone_mode=False)
    assert isinstance(result, dict)
    return result


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, text: str) -> None:
    (folder / "deltatape.yaml").write_text(text)


def test_without_a_file_the_options_have_their_own_defaults(folder: Path) -> None:
    assert not (folder / "deltatape.yaml").exists()
    values = called(["run"])
    assert (values["listen"], values["to"], values["settings"]) == ("here", Path("tapes"), None)
    assert current_settings() is None


def test_values_are_what_the_flag_would_take(folder: Path) -> None:
    write(
        folder,
        "run:\n  listen: 1:30\n  grace: 500ms\n  to: mine\n  upstream: [a=b, 'c d']\n"
        "  mode: b\n  strict: yes\n  max-size: 12\n",
    )
    values = called(["run"])
    settings = values.pop("settings")
    assert values == {
        "words": (),
        "listen": "1:30",
        "grace": 0.5,
        "to": Path("mine"),
        "upstream": ("a=b", "c d"),
        "mode": "b",
        "strict": True,
        "max_size": 12,
    }
    assert settings is not None


def test_flags_go_before_variables_and_these_before_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, "run: {listen: file, mode: b, max-size: 2, strict: true, upstream: one}\n")
    monkeypatch.setenv("DELTATAPE_RUN_LISTEN", "variable")
    monkeypatch.setenv("DELTATAPE_RUN_MODE", "a")
    values = called(["run", "--listen", "flag", "--no-strict", "--upstream", "two"])
    assert values["listen"] == "flag"
    assert values["mode"] == "a"
    assert values["max_size"] == 2
    assert values["strict"] is False
    assert values["upstream"] == ("two",)


def test_one_value_is_enough_where_several_may_be(folder: Path) -> None:
    write(folder, "run: {upstream: one}\n")
    assert called(["run"])["upstream"] == ("one",)
    write(folder, "run: {upstream: []}\n")
    assert called(["run"])["upstream"] == ()


def test_paths_are_seen_from_where_the_file_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "inner").mkdir()
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.chdir(folder / "inner")
    for text, path in (
        ("mine", folder / "mine"),
        ("/abs", Path("/abs")),
        ("~/tapes", Path("/home/someone/tapes")),
        ("~nobody-of-that-name/x", folder / "~nobody-of-that-name" / "x"),
        ("'-'", Path("-")),
    ):
        write(folder, f"run: {{to: {text}}}\n")
        assert called(["run"])["to"] == path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lissen: x", "1:7: 'lissen' is no option of deltatape run; did you mean listen?"),
        ("max_size: 1", "1:7: 'max_size' is no option of deltatape run; did you mean max-size?"),
        ("q: 1", "1:7: 'q' is no option of deltatape run; known are grace listen max-size mode"),
        ("help: true", "1:7: 'help' is no option"),
        ("words: a", "1:7: 'words' is no option"),
        ("no-strict: true", "1:7: 'no-strict' is no option"),
        (
            "grace: 5 parsecs",
            "1:14: run.grace: '5 parsecs': invalid duration; use 500ms, 30s or 2m",
        ),
        ("mode: c", "1:13: run.mode: 'c' is not one of 'a', 'b'."),
        ("max-size: x", "1:17: run.max-size: 'x' is not a valid integer."),
        ("strict: maybe", "1:15: run.strict: 'maybe': true or false is accepted"),
        ("strict: ", "1:14: run.strict: one value is accepted"),
        ("listen: [a]", "1:15: run.listen: one value is accepted"),
        ("listen: {a: b}", "1:15: run.listen: one value is accepted"),
        ("listen: ~", "1:15: run.listen: one value is accepted"),
        ("upstream: {a: b}", "1:17: run.upstream: a value or a list of values is accepted"),
        ("upstream: [a, [b]]", "1:17: run.upstream: a value or a list of values is accepted"),
        ("upstream: [a, ~]", "1:17: run.upstream: a value or a list of values is accepted"),
        ("upstream: ", "1:16: run.upstream: a value or a list of values is accepted"),
    ],
)
def test_what_an_option_does_not_take_is_reported_with_its_place(
    folder: Path, text: str, message: str
) -> None:
    write(folder, f"run: {{{text}}}\n")
    with pytest.raises(UsageError) as raised:
        called(["run"])
    assert str(raised.value).startswith(f"deltatape.yaml:{message}")


def test_a_mistake_is_told_although_a_flag_overrides_it(folder: Path) -> None:
    write(folder, "run: {mode: c}\n")
    with pytest.raises(UsageError, match="not one of"):
        called(["run", "--mode", "a"])


def test_a_mistake_that_shows_later_is_reported_with_its_place(folder: Path) -> None:
    write(folder, "run: {listen: nowhere}\n")
    with pytest.raises(UsageError, match=r"not an address \(set at deltatape\.yaml:1:15\)$"):
        called(["run"])
    write(folder, "run: {mode: b}\n")
    with pytest.raises(UsageError, match=r"not an address$"):
        called(["run", "--listen", "nowhere"])


def test_help_is_there_although_the_file_is_damaged(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, "a: *b\n")
    group.main(["run", "--help"], prog_name="x", standalone_mode=False)
    assert "A command." in capsys.readouterr().out
    with pytest.raises(UsageError, match="anchors"):
        called(["run", "--", "--help"])


def test_without_a_working_directory_there_are_no_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    try:
        assert called(["run"])["settings"] is None
    finally:
        monkeypatch.chdir(tmp_path)


def example() -> str:
    """The settings file that the documentation shows."""
    match = re.search(r"```yaml\n(.*?)```", DOCUMENTATION.read_text(), re.DOTALL)
    assert match is not None
    return match[1]


def test_the_documented_example_is_accepted_by_every_command_it_names(tmp_path: Path) -> None:
    path = tmp_path / "deltatape.yaml"
    path.write_text(example())
    settings = read(path, "deltatape.yaml", COMMANDS)
    assert {"record", "replay", "check"} <= settings.sections.keys()
    ctx = click.Context(Commands())
    for name, section in settings.sections.items():
        command = Commands().get_command(ctx, name)
        assert command is not None
        assert len(defaults(settings, command)) == len(section)
    assert settings.upstreams


def test_the_documented_thresholds_are_all_there_are_with_their_defaults(tmp_path: Path) -> None:
    path = tmp_path / "deltatape.yaml"
    path.write_text(example())
    settings = read(path, "deltatape.yaml", COMMANDS)
    assert settings.thresholds.keys() == FIELDS.keys()
    phrases = DEFAULTS.small_talk
    assert replace(settings.rules(), app=CONTRACT, small_talk=phrases) == DEFAULTS
    assert settings.rules().app.name[0] == "fn"
    assert settings.rules().small_talk == (*phrases, "ahoy", "so long")


@pytest.mark.parametrize("command", ["torture", "shrink"])
def test_an_oracle_is_taken_from_a_named_file_only(command: str, tmp_path: Path) -> None:
    (tmp_path / "deltatape.yaml").write_text(f"{command}: {{oracle: touch PWNED}}\n")
    found = deltatape_called(command, "x.tape", "--", "true", folder=tmp_path)
    assert found.returncode == 2
    assert b"oracle runs a command, so it counts only in a file that you name" in found.stderr


def test_a_command_is_taken_from_a_named_file_only(tmp_path: Path) -> None:
    (tmp_path / "deltatape.yaml").write_text("record: {on-finding: touch PWNED}\n")
    found = deltatape_called("record", "--", "true", folder=tmp_path)
    assert found.returncode == 2
    assert b"deltatape.yaml:1:10: on-finding runs a command" in found.stderr
    env = {"DELTATAPE_CONFIG": "deltatape.yaml"}
    assert deltatape_called("record", "--", "true", folder=tmp_path, env=env).returncode == 0
