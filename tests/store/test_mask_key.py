import stat
import threading
from pathlib import Path

import pytest

from deltatape.store.mask_key import mask_key
from helpers.disk import read_only


def no_alarm(text: str) -> None:
    raise AssertionError(text)


def test_the_key_is_made_once_and_kept_for_its_owner(tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path / "state")}
    key = mask_key(environment, no_alarm)
    assert len(key) == 32
    assert mask_key(environment, no_alarm) == key
    path = tmp_path / "state" / "deltatape" / "mask.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [found.name for found in path.parent.iterdir()] == ["mask.key"]


@pytest.mark.parametrize("stated", [{}, {"XDG_STATE_HOME": ""}, {"XDG_STATE_HOME": "relative"}])
def test_without_an_absolute_state_folder_it_is_under_home(
    tmp_path: Path, stated: dict[str, str]
) -> None:
    mask_key({"HOME": str(tmp_path), **stated}, no_alarm)
    assert (tmp_path / ".local/state/deltatape/mask.key").exists()


def test_processes_that_make_it_at_the_same_time_agree(tmp_path: Path) -> None:
    keys: list[bytes] = []
    together = threading.Barrier(8)

    def make() -> None:
        together.wait()
        keys.append(mask_key({"XDG_STATE_HOME": str(tmp_path)}, no_alarm))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys) == 8
    assert len(set(keys)) == 1


def test_without_a_place_for_it_the_key_is_for_this_run_and_that_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    alarms: list[str] = []
    with read_only(folder):
        environment = {"XDG_STATE_HOME": str(folder)}
        keys = {mask_key(environment, alarms.append) for _ in range(2)}
    assert len(keys) == 2
    assert "cannot be compared" in alarms[0]


def test_a_damaged_key_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "deltatape" / "mask.key"
    path.parent.mkdir()
    path.write_bytes(b"short")
    alarms: list[str] = []
    assert len(mask_key({"XDG_STATE_HOME": str(tmp_path)}, alarms.append)) == 32
    assert "holds 5 bytes instead of 32; delete it" in alarms[0]
    assert path.read_bytes() == b"short"
