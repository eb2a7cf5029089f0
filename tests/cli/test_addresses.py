"""Upstreams come from options first, then from deltatape.yaml."""

from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from deltatape.cli.addresses import upstreams_of
from deltatape.errors import UsageError
from deltatape.settings.settings import load


def found(options: Sequence[str], folder: Path, settings: str = "") -> list[str]:
    """Return the upstreams as `NAME=URL`, with a settings file that contains `settings`."""
    (folder / "deltatape.yaml").write_text(settings)
    context = click.Context(click.Command("replay"), obj=load(folder, {}, ["replay"]))
    with context:
        return [f"{each.name}={each.origin.url}{each.path}" for each in upstreams_of(options)]


def test_options_come_before_those_of_the_settings_file(tmp_path: Path) -> None:
    settings = "upstreams: {one: 'http://a.example/v1', two: 'http://b.example'}\n"
    assert found(("two=http://c.example",), tmp_path, settings) == [
        "two=http://c.example",
        "one=http://a.example/v1",
    ]
    assert upstreams_of(()) == ()


def test_one_that_serves_everything_leaves_no_room_for_others(tmp_path: Path) -> None:
    settings = "upstreams: {one: 'http://a.example'}\n"
    assert found(("http://c.example",), tmp_path, settings) == ["=http://c.example"]


def test_a_wrong_one_in_the_file_is_reported_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"deltatape\.yaml:1"):
        found((), tmp_path, "upstreams: {one: 'nowhere'}\n")
