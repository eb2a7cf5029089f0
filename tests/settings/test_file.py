import os
from collections.abc import Callable
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.settings.file import FilePosition, find


def test_the_nearest_file_upward_holds(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert find(inner, {}) is None
    (tmp_path / "deltatape.yaml").touch()
    assert find(inner, {}) == tmp_path / "deltatape.yaml"
    (tmp_path / "a" / "deltatape.yaml").touch()
    assert find(inner, {}) == tmp_path / "a" / "deltatape.yaml"


def test_the_variable_names_another_file_or_none(tmp_path: Path) -> None:
    (tmp_path / "deltatape.yaml").touch()
    (tmp_path / "other.yaml").touch()
    assert find(tmp_path, {"DELTATAPE_CONFIG": "none"}) is None
    assert find(tmp_path, {"DELTATAPE_CONFIG": ""}) == tmp_path / "deltatape.yaml"
    assert find(tmp_path, {"DELTATAPE_CONFIG": "other.yaml"}) == tmp_path / "other.yaml"
    with pytest.raises(UsageError, match=r"DELTATAPE_CONFIG=missing\.yaml: no such file"):
        find(tmp_path, {"DELTATAPE_CONFIG": "missing.yaml"})


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (Path.mkdir, "a folder"),
        (os.mkfifo, "no regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "no regular file"),
    ],
)
def test_what_is_no_file_is_refused(
    tmp_path: Path, make: Callable[[Path], object], kind: str
) -> None:
    (tmp_path / "a").mkdir()
    make(tmp_path / "deltatape.yaml")
    with pytest.raises(UsageError, match=rf"deltatape\.yaml: is {kind}; .* DELTATAPE_CONFIG=none"):
        find(tmp_path / "a", {})


def test_a_folder_that_may_not_be_looked_into_has_no_file(tmp_path: Path) -> None:
    assert find(tmp_path / ("x" * 300), {}) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_file_of_a_stranger_is_used_only_when_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "deltatape.yaml"
    path.touch()
    os.chown(path, 65534, -1)
    with pytest.raises(UsageError, match="belongs to another user") as raised:
        find(tmp_path, {})
    assert f"DELTATAPE_CONFIG={path}" in str(raised.value)
    assert find(tmp_path, {"DELTATAPE_CONFIG": str(path)}) == path


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_in_a_folder_of_the_same_owner_a_file_is_no_strangers(tmp_path: Path) -> None:
    path = tmp_path / "deltatape.yaml"
    path.touch()
    for each in (path, tmp_path):
        os.chown(each, 65534, -1)
    assert find(tmp_path, {}) == path


PLACE = FilePosition(file="f.yaml", line=3, column=11)


def test_a_place_is_reported_as_editors_and_compilers_do() -> None:
    assert str(PLACE) == "f.yaml:3:11"
    assert str(PLACE.refuse("no")) == "f.yaml:3:11: no"


def test_an_unknown_key_is_reported_with_the_nearest_known_ones() -> None:
    known = ["listen", "max-size", "to"]
    for key, accepted in (
        ("lissen", "did you mean listen?"),
        ("max_size", "did you mean max-size?"),
        ("zzz", "known are listen max-size to"),
    ):
        error = PLACE.unknown(key, known, "option")
        assert str(error) == f"f.yaml:3:11: {key!r} is no option; {accepted}"
