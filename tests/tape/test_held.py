import pytest

from deltatape.tape import held
from deltatape.tape.held import BodyMasker, Held, Piece, Queue
from deltatape.tape.literals import Literals

KEY = b"sk-fake-000000"


def masker() -> BodyMasker:
    literals = Literals(lambda credential: credential.decode())
    literals.learn(KEY)
    literals.learn(b"000000/fake")
    return BodyMasker(literals)


def fed(*data: bytes, finish: bool = True) -> list[Piece]:
    body = masker()
    pieces = [body.add(one) for one in data]
    if finish:
        body.finish()
        assert not body.waiting
    return pieces


def shown(pieces: list[Piece]) -> list[bytes]:
    assert all(piece.decided for piece in pieces)
    return [piece.masked()[0] for piece in pieces]


def test_a_piece_without_the_beginning_of_a_credential_is_decided_at_once() -> None:
    (piece,) = fed(b"data: " + KEY + b"\n", finish=False)
    assert piece.decided
    assert piece.masked() == (b"data: **************\n", ((6, 20, KEY.decode()),))


@pytest.mark.parametrize("cut", range(1, len(KEY)))
def test_a_credential_over_two_pieces_is_masked_in_both(cut: int) -> None:
    first, second = fed(b"a" + KEY[:cut], KEY[cut:] + b"b\n", finish=False)
    assert first.masked() == (b"a" + b"*" * cut, ((1, 1 + cut, KEY.decode()),))
    rest = len(KEY) - cut
    assert second.masked() == (b"*" * rest + b"b\n", ((0, rest, KEY.decode()),))
    assert first.decided
    assert second.decided


def test_a_credential_may_come_byte_by_byte() -> None:
    pieces = fed(*(bytes([byte]) for byte in b"x" + KEY + b"y"))
    assert b"".join(shown(pieces)) == b"x" + b"*" * len(KEY) + b"y"


def test_what_only_begins_like_a_credential_is_decided_when_it_goes_on_otherwise() -> None:
    body = masker()
    first = body.add(b"data: sk-fake-")
    assert not first.decided
    assert body.waiting
    second = body.add(b"1\n")
    assert shown([first, second]) == [b"data: sk-fake-", b"1\n"]
    assert first.masked()[1] == ()


def test_a_piece_in_the_middle_waits_too() -> None:
    body = masker()
    pieces = [body.add(b"sk-"), body.add(b"fake"), body.add(b"-0")]
    assert not any(piece.decided for piece in pieces)
    pieces.append(body.add(b"00000 "))
    assert shown(pieces) == [b"***", b"****", b"**", b"***** "]


def test_a_credential_that_ends_in_the_beginning_of_another_is_masked_with_it() -> None:
    pieces = fed(KEY, b"/fake\n")
    assert shown(pieces) == [b"*" * 14, b"*****\n"]
    assert [piece.masked()[1] for piece in pieces] == [
        ((0, 14, KEY.decode()),),
        ((0, 5, "000000/fake"),),
    ]


@pytest.mark.parametrize("length", range(1, len(KEY)))
def test_a_credential_that_was_cut_is_masked_from_eight_bytes_on(length: int) -> None:
    expected = b"*" * length if length >= 8 else KEY[:length]
    assert shown(fed(b"x ", KEY[:length])) == [b"x ", expected]


def test_giving_up_masks_what_may_be_a_credential_and_the_rest_of_it() -> None:
    body = masker()
    first = body.add(b"x sk-")
    body.give_up()
    assert body.waiting
    assert shown([first]) == [b"x ***"]
    second = body.add(KEY[3:] + b"\n")
    assert shown([second]) == [b"***********\n"]


def test_a_queue_keeps_the_order_and_knows_when_it_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(held, "MOST_HELD", 10)
    out: list[object] = []
    queue = Queue(out.append, out.append)
    queue.add(b"first\n")
    assert (out, bool(queue)) == ([b"first\n"], False)
    body = masker()
    waiting = Held(t_ns=1, middle="", piece=body.add(b"sk-"), chunk_ends=None)
    queue.add(waiting)
    queue.add(b"line 1\n")
    assert (len(out), bool(queue), queue.full) == (1, True, False)
    queue.add(b"2\n")
    assert queue.full
    body.finish()
    queue.release()
    assert out == [b"first\n", waiting, b"line 1\n", b"2\n"]
    assert (bool(queue), queue.full) == (False, False)
