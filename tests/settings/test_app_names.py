import dataclasses

import pytest

from deltatape.errors import UsageError
from deltatape.model.app_names import CONTRACT, AppNames
from deltatape.settings.app_names import FIELDS, app_names
from deltatape.settings.document import parse
from deltatape.settings.values import Entry, Table


def entries(text: str) -> dict[str, Entry]:
    table = parse(text.encode(), "f.yaml")
    assert isinstance(table, Table)
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
def test_what_is_no_name_is_told_with_its_place(text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        app_names(entries(text))
    assert str(raised.value).startswith(message)
