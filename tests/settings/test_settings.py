import dataclasses
import os
import re
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.model.app_names import CONTRACT, AppNames
from deltatape.model.rule_settings import DEFAULTS
from deltatape.settings.document import parse
from deltatape.settings.file import MappingNode, MappingValue
from deltatape.settings.settings import FIELDS, SettingsFile, app_names, load

COMMANDS = ("record", "check", "why")


def loaded(folder: Path, text: str) -> SettingsFile:
    (folder / "deltatape.yaml").write_text(text)
    settings = load(folder, {}, COMMANDS)
    assert settings is not None
    return settings


def test_without_a_file_there_are_no_settings(tmp_path: Path) -> None:
    assert load(tmp_path, {"DELTATAPE_CONFIG": "none"}, COMMANDS) is None


@pytest.mark.parametrize("text", ["", "# nothing\n", "record:\nupstreams:\nrules: ~\n", "{}"])
def test_an_empty_file_sets_nothing(tmp_path: Path, text: str) -> None:
    settings = loaded(tmp_path, text)
    assert settings.path == tmp_path / "deltatape.yaml"
    assert not any(settings.sections.values())
    assert settings.upstreams == {}
    assert settings.rules() == DEFAULTS


def test_sections_upstreams_and_thresholds(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path,
        "record: {keep: 2h}\nupstreams:\n  corp: https://llm.corp.example\nrules: {stall: 3s}\n",
    )
    assert list(settings.sections) == ["record"]
    assert list(settings.sections["record"]) == ["keep"]
    assert settings.upstreams == {"corp": "https://llm.corp.example"}
    assert settings.rules().stall_s == 3.0
    assert settings.rules().app == CONTRACT


def test_an_applications_names_for_its_events_go_with_the_thresholds(tmp_path: Path) -> None:
    settings = loaded(tmp_path, "app-events: {tool-call: invoke}\n")
    assert settings.rules().app.tool_call == ("invoke", "tool_call")
    wrong = loaded(tmp_path, "app-events: {invoke: x}\n")
    with pytest.raises(UsageError, match=r"^deltatape\.yaml:1:14: 'invoke' is no name"):
        wrong.rules()


def test_an_error_about_an_upstream_tells_where_it_stands(tmp_path: Path) -> None:
    settings = loaded(tmp_path, "upstreams:\n  corp: ftp://x\n")
    with (
        pytest.raises(UsageError, match=r"^deltatape\.yaml:2:3: --upstream 'corp=ftp://x': no"),
        settings.at_upstream("corp"),
    ):
        raise UsageError("--upstream 'corp=ftp://x': not an upstream")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("recrod: {}", "deltatape.yaml:1:1: 'recrod' is no section; did you mean record?"),
        ("x: {}", "deltatape.yaml:1:1: 'x' is no section; known are app-events check record rules"),
        ("<<: {}", "deltatape.yaml:1:1: '<<' is no section"),
        ("[record]", "deltatape.yaml:1:1: a settings file is a mapping"),
        ("record", "deltatape.yaml:1:1: a settings file is a mapping"),
        ("record: 1", "deltatape.yaml:1:9: record: a mapping is accepted"),
        ("upstreams: [a=b]", "deltatape.yaml:1:12: upstreams: a mapping is accepted"),
        ("upstreams: {a: [b]}", "deltatape.yaml:1:16: upstreams.a: one URL is accepted"),
        ("upstreams: {a: }", "deltatape.yaml:1:15: upstreams.a: one URL is accepted"),
        ("a: *b", "deltatape.yaml:1:4: anchors"),
    ],
)
def test_what_is_not_known_is_reported_with_its_place(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(UsageError) as raised:
        loaded(tmp_path, text)
    assert str(raised.value).startswith(message)


def test_a_file_above_is_called_by_its_whole_path(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    path = tmp_path / "deltatape.yaml"
    path.write_text("x: 1\n")
    with pytest.raises(UsageError, match=f"^{re.escape(str(path))}:1:1: "):
        load(inner, {}, COMMANDS)


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "deltatape.yaml"
    path.write_text("")
    path.chmod(0)
    # Reading that one from its beginning fails for root, too.
    named = {"DELTATAPE_CONFIG": "/proc/self/mem"} if os.access(path, os.R_OK) else {}
    with pytest.raises(UsageError, match="a settings file can be read"):
        load(tmp_path, named, COMMANDS)


def entries(text: str) -> dict[str, MappingValue]:
    table = parse(text.encode(), "f.yaml")
    assert isinstance(table, MappingNode)
    return dict(table.entries)


def test_without_any_the_contract_holds() -> None:
    assert app_names({}) == CONTRACT


def test_names_go_before_the_built_in_ones() -> None:
    names = app_names(entries("{tool-call: [call, tool_call], name: fn, type: event}"))
    assert names.tool_call == ("call", "tool_call")
    assert names.name == ("fn", *CONTRACT.name)
    assert names == dataclasses.replace(
        CONTRACT, tool_call=names.tool_call, name=names.name, type=("event", "type")
    )


def test_every_name_can_be_set() -> None:
    assert set(FIELDS.values()) == set(AppNames.__dataclass_fields__)
    for name, field in FIELDS.items():
        assert getattr(app_names(entries(f"{name}: own")), field)[0] == "own"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tool_call: x", "f.yaml:1:1: 'tool_call' is no name of an application's events; did you"),
        ("name: ", "f.yaml:1:6: app-events.name: a word or a list of words is accepted"),
        ("name: {a: b}", "f.yaml:1:7: app-events.name: a word or a list of words is accepted"),
        ("name: [a, ~]", "f.yaml:1:7: app-events.name: a word or a list of words is accepted"),
        ("name: [a, [b]]", "f.yaml:1:7: app-events.name: a word or a list of words is accepted"),
    ],
)
def test_what_is_not_a_name_is_reported_with_its_place(text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        app_names(entries(text))
    assert str(raised.value).startswith(message)
