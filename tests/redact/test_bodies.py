import gzip

from deltatape.redact.bodies import Body, Coded, Side, blanked, by_line, codings_of, look, mend
from deltatape.redact.layers import Edit
from helpers.eventstream import event
from helpers.planted import KEY, STARS


def made(*pieces: bytes, side: Side = Side.RESPONSE, codings: tuple[str, ...] = ()) -> Body:
    body = Body(exchange=1, side=side, codings=codings)
    for line, piece in enumerate(pieces, 5):
        body.add(line, piece)
    return body


def test_a_secret_that_records_cut_in_two_is_found_and_brought_back_to_them() -> None:
    body = made(b'{"k":"sk-fake', b"fake", b'fake0000"}')
    found = look(body)
    assert (found.coded, [secret.kind for secret in found.secrets]) == (Coded.NO, ["API key"])
    edits = dict(by_line(body, found.secrets[0].edits))
    assert edits == {5: Edit(6, "*******"), 6: Edit(0, "****"), 7: Edit(0, "********")}
    assert (body.at(0).line, body.at(12).line, body.at(13).line) == (5, 5, 6)


def test_lines_of_a_log_are_searched_with_their_line_feeds() -> None:
    pem = b"-----BEGIN PRIVATE KEY-----\nfake\n-----END PRIVATE KEY-----"
    body = made(*pem.split(b"\n"), side=Side.STDERR)
    (secret,) = look(body).secrets
    assert {line for line, _ in by_line(body, secret.edits)} == {5, 6, 7}
    assert list(body.cut(27, 28)) == []


def test_a_coded_body_is_decoded_and_searched() -> None:
    body = made(gzip.compress(f"a {KEY}".encode()), codings=("gzip",))
    found = look(body)
    assert (found.coded, found.detail) == (Coded.READ, "")
    assert [secret.spans for secret in found.secrets] == [((2, 21),)]
    (edit,) = blanked(body)
    assert (edit.start, set(edit.text), len(edit.text)) == (0, {"*"}, len(body.data))


def test_a_coded_body_that_breaks_off_is_searched_as_far_as_it_goes() -> None:
    found = look(made(gzip.compress(f"{KEY} ".encode() * 9)[:-6], codings=("gzip",)))
    assert found.coded is Coded.READ
    assert found.secrets
    assert "cut" in found.detail


def test_nobody_can_look_into_a_body_of_unknown_coding() -> None:
    found = look(made(KEY.encode(), codings=("rot13",)))
    assert (found.coded, found.secrets) == (Coded.UNREADABLE, ())
    assert "unknown coding 'rot13'" in found.detail


def test_an_imported_body_that_has_lost_its_coding_is_searched_as_it_is() -> None:
    found = look(made(f'{{"k":"{KEY}"}}'.encode(), codings=("gzip",)))
    assert (found.coded, len(found.secrets), found.detail) == (Coded.NO, 1, "")


def test_an_imported_stream_of_messages_that_has_lost_its_coding_is_searched_as_it_is() -> None:
    found = look(made(event("a", {"k": KEY}), codings=("gzip",)))
    assert (found.coded, len(found.secrets)) == (Coded.NO, 1)


def test_checksums_that_masking_broke_are_mended_in_the_body() -> None:
    whole = event("a", {"k": KEY})
    at = whole.index(KEY.encode())
    masked = whole.replace(KEY.encode(), STARS.encode())
    body = Body(exchange=1, side=Side.RESPONSE)
    body.add(5, whole + masked[:7])
    body.add(6, masked[7:], ((at - 7, at - 7 + len(KEY), "ab12cd34"),))
    assert [edit.start for edit in mend(body).mends] == [2 * len(whole) - 4]
    assert body.data == whole + event("a", {"k": STARS})
    assert mend(body) == ((), ())


def test_checksums_are_looked_at_only_where_the_messages_stand_in_the_body() -> None:
    broken = event("a", {"k": KEY})[:-1] + b"?"
    assert mend(made(broken)).wrong == (0,)
    assert mend(made(broken, codings=("gzip",))) == ((), ())
    assert mend(made(broken, side=Side.REQUEST)) == ((), ())


def test_codings_are_read_from_the_head() -> None:
    assert codings_of(((b"Content-Encoding", b"gzip, br"),)) == ("gzip", "br")
    assert codings_of(()) == ()
