from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.model.exchange import Read
from deltatape.mutate._edits import Edit, Moved, edited, narrowed, tidy


def read(data: bytes, **others: object) -> Read:
    """A read of `data`."""
    return Read(t_ns=0, data=data, boundaries=None, line=None, **others)  # type: ignore[arg-type]


def test_edits_are_put_in_order_and_do_not_overlap() -> None:
    edits = tidy([Edit(5, 9, b"x"), Edit(2, 7, b""), Edit(2, 2, b"y")])
    assert edits == [Edit(2, 2, b"y"), Edit(2, 7, b""), Edit(7, 9, b"x")]
    assert edited(b"0123456789", edits) == b"01yx9"


@given(st.binary(max_size=6), st.binary(max_size=6))
@settings(max_examples=60)
def test_the_smallest_edit_makes_the_new_bytes(old: bytes, new: bytes) -> None:
    edit = narrowed(3, old, new)
    assert edited(b"..." + old + b"...", [edit]) == b"..." + new + b"..."
    assert edit.end - edit.start <= len(old)
    assert edit != narrowed(3, old, old) or old == new


def test_bytes_stay_in_their_read() -> None:
    moved = Moved([Edit(2, 3, b"xyz"), Edit(4, 4, b"!")])
    body = b"01xyz3!4567"
    first = moved.read(read(b"0123"), 0, body)
    second = moved.read(read(b"4567"), 4, body)
    assert first
    assert second
    assert (first.data, second.data) == (b"01xyz3!", b"4567")


def test_what_replaces_a_border_belongs_to_the_left() -> None:
    moved = Moved([Edit(3, 5, b"ab")])
    assert [moved.at(offset) for offset in (0, 3, 4, 5, 8)] == [0, 3, 5, 5, 8]


def test_what_is_inserted_at_the_beginning_belongs_to_the_first_read() -> None:
    moved = Moved([Edit(0, 0, b"new")])
    assert moved.at(0) == 0
    assert moved.at(1) == 4


def test_chunks_and_masked_spans_move_along() -> None:
    moved = Moved([Edit(1, 2, b""), Edit(4, 5, b"")])
    before = Read(
        t_ns=0, data=b"012345", boundaries=(2, 6), line=1, masked=((3, 4, "aa"), (4, 5, "bb"))
    )
    after = moved.read(before, 0, b"0235")
    assert after
    assert after.boundaries == (1, 4)
    assert after.masked == ((2, 3, "aa"),)


def test_a_read_without_bytes_is_gone() -> None:
    assert Moved([Edit(2, 4, b"")]).read(read(b"23"), 2, b"01") is None
