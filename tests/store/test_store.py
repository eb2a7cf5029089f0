from pathlib import Path

from deltatape import store
from helpers.tapes import whole_tape, write_tape


def test_what_others_need_of_the_store_is_at_hand(tmp_path: Path) -> None:
    name = write_tape(tmp_path, whole_tape())
    assert len(store.open_tape(store.locate("", (tmp_path,)).path)) == 2
    assert [str(found.path) for found in store.list_tapes((tmp_path,))] == [name]
