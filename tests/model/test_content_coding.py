import gzip
import sys
import zlib
from collections.abc import Callable

import brotli  # type: ignore[import-untyped]
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from deltatape.model.content_coding import (
    RATIO_FLOOR,
    RATIO_LIMIT,
    ContentDecoder,
    DecodeFault,
    decode_body,
    parse_codings,
)
from deltatape.model.stream import AnomalyKind
from helpers.splits import cut, cuttings, each_alone, random_cuts

BODY = b'data: {"n": 1}\n\n' * 12


def raw_deflate(data: bytes) -> bytes:
    coder = zlib.compressobj(wbits=-15)
    return coder.compress(data) + coder.flush()


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def br(data: bytes) -> bytes:
    return bytes(brotli.compress(data))


CODERS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", raw_deflate),
    ("zstd", zstd),
    ("br", br),
]
EACH = pytest.mark.parametrize(
    ("name", "encode"), CODERS, ids=["gzip", "zlib", "raw-deflate", "zstd", "br"]
)


def run(
    codings: list[str], pieces: list[bytes], limit: int = 1 << 20
) -> tuple[bytes, DecodeFault | None]:
    decoder = ContentDecoder(codings, limit=limit)
    body = b"".join([decoder.feed(piece) for piece in pieces])
    decoder.end()
    return body, decoder.fault


def test_the_field_lists_codings_in_the_order_in_which_they_were_applied() -> None:
    assert parse_codings(b"GZip , br") == ("gzip", "br")
    assert parse_codings(b"identity,, x-gzip") == ("gzip",)
    assert parse_codings(None) == parse_codings(b"") == ()
    assert parse_codings(b"\xff") == ("\ufffd",)


def test_without_coding_the_bytes_are_passed_on() -> None:
    assert run([], [b"a", b"b"]) == (b"ab", None)


@EACH
def test_any_cutting_decodes_to_the_body(name: str, encode: Callable[[bytes], bytes]) -> None:
    for pieces in cuttings(encode(BODY)):
        assert run([name], pieces) == (BODY, None)


@EACH
def test_data_before_a_cut_is_kept_and_the_cut_is_reported(
    name: str, encode: Callable[[bytes], bytes]
) -> None:
    coded = encode(BODY)[:-1]
    body, fault = run([name], [coded])
    assert BODY.startswith(body)
    assert fault is not None
    assert (fault.kind, "cut: its end is missing" in fault.detail) == (
        AnomalyKind.BAD_CONTENT_CODING,
        True,
    )
    for pieces in cuttings(coded):
        assert run([name], pieces) == (body, fault)


@EACH
def test_data_after_the_end_is_reported_and_not_part_of_the_body(
    name: str, encode: Callable[[bytes], bytes]
) -> None:
    coded = encode(BODY) + b"garbage"
    for pieces in cuttings(coded):
        body, fault = run([name], pieces)
        assert body == BODY
        assert fault is not None
        assert fault.kind is AnomalyKind.BAD_CONTENT_CODING


@EACH
def test_damage_ends_the_body_at_the_same_byte_however_it_is_cut(
    name: str, encode: Callable[[bytes], bytes]
) -> None:
    coded = encode(bytes(range(256)) * 4)
    damaged = coded[: len(coded) // 2] + b"\xff\x00\xff" + coded[len(coded) // 2 :]
    whole = run([name], [damaged])
    assert whole[1] is not None
    for pieces in (each_alone(damaged), cut(damaged, [len(coded) // 2]), cut(damaged, [7, 30])):
        assert run([name], pieces)[0] == whole[0]


@pytest.mark.parametrize(("name", "encode"), [CODERS[0], CODERS[3]], ids=["gzip", "zstd"])
def test_members_after_each_other_are_one_body(name: str, encode: Callable[[bytes], bytes]) -> None:
    coded = encode(b"one ") + encode(b"two") + encode(b"")
    for pieces in cuttings(coded):
        assert run([name], pieces) == (b"one two", None)


def test_the_beginning_of_a_member_that_never_comes_is_trailing_data() -> None:
    for pieces in cuttings(gzip.compress(b"x") + b"\x1f"):
        body, fault = run(["gzip"], pieces)
        assert body == b"x"
        assert fault is not None
        assert fault.detail == "data after the end of the gzip data, beginning 1f"


def test_a_thousand_members_are_enough() -> None:
    body, fault = run(["gzip"], [gzip.compress(b"x") * 1002])
    assert body == b"x" * 1000
    assert fault == DecodeFault(AnomalyKind.TOO_LARGE, "more than 1000 members of gzip data")


def test_codings_are_undone_from_the_last_to_the_first() -> None:
    coded = br(zstd(gzip.compress(BODY)))
    assert run(["gzip", "zstd", "br"], each_alone(coded)) == (BODY, None)
    body, fault = run(["gzip", "br"], [br(b"plain")])
    assert body == b""
    assert fault is not None
    assert fault.detail.startswith("the gzip data is damaged")


def test_an_empty_body_needs_no_coding() -> None:
    assert run(["gzip"], [b""]) == (b"", None)


@EACH
def test_output_stops_exactly_at_the_limit(name: str, encode: Callable[[bytes], bytes]) -> None:
    coded = encode(BODY)
    for pieces in ([coded], each_alone(coded)):
        body, fault = run([name], pieces, limit=50)
        assert body == BODY[:50]
        assert fault == DecodeFault(AnomalyKind.TOO_LARGE, "more than 50 bytes of decoded data")
    assert run([name], [coded], limit=len(BODY)) == (BODY, None)


@EACH
def test_a_decompression_bomb_is_stopped(name: str, encode: Callable[[bytes], bytes]) -> None:
    bomb = encode(bytes(4 * RATIO_FLOOR))
    decoder = ContentDecoder([name])
    produced = sum(len(decoder.feed(piece)) for piece in cut(bomb, range(0, len(bomb), 500)))
    assert decoder.fault is not None
    assert decoder.fault.kind is AnomalyKind.TOO_LARGE
    assert produced == max(RATIO_FLOOR, RATIO_LIMIT * min(len(bomb), produced // RATIO_LIMIT))
    assert decoder.feed(b"more") == b""


def test_a_zstd_window_beyond_the_standard_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=25)
    coder = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    _, fault = run(["zstd"], [coder.compress(BODY) + coder.flush()])
    assert fault is not None
    assert fault.kind is AnomalyKind.BAD_CONTENT_CODING


@pytest.mark.parametrize(
    ("codings", "detail"),
    [
        (["compress"], "unknown coding 'compress'; known are gzip, deflate, zstd, br"),
        (["gzip"] * 9, "9 codings on top of each other"),
    ],
)
def test_a_coding_that_cannot_be_undone_is_reported(codings: list[str], detail: str) -> None:
    assert run(codings, [b"x"]) == (b"", DecodeFault(AnomalyKind.BAD_CONTENT_CODING, detail))


def test_br_without_its_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "brotli", None)
    body, fault = run(["br"], [br(BODY)])
    assert body == b""
    assert fault is not None
    assert "pip install deltatape[compression]" in fault.detail


@given(st.data())
def test_any_bytes_decode_to_the_same_under_any_cutting(data: st.DataObject) -> None:
    name, encode = data.draw(st.sampled_from(CODERS))
    coded = bytearray(encode(data.draw(st.binary(max_size=60)) * 3))
    for at in data.draw(st.lists(st.integers(0, max(0, len(coded) - 1)), max_size=2)):
        coded[at] ^= data.draw(st.integers(0, 255))
    body = bytes(coded) + data.draw(st.binary(max_size=3))
    whole = run([name], [body])
    assert run([name], each_alone(body))[0] == whole[0]
    cuts = data.draw(random_cuts(len(body)))
    assert run([name], cut(body, cuts))[0] == whole[0]
    assert (run([name], cut(body, cuts))[1] is None) == (whole[1] is None)


JSON = b'{"model": "m", "messages": []}'


@EACH
def test_a_whole_body_is_decoded_at_once(name: str, encode: Callable[[bytes], bytes]) -> None:
    assert decode_body(encode(BODY), [name]) == (BODY, None)
    assert decode_body(encode(b""), [name]) == (b"", None)


def test_a_whole_body_without_codings_is_the_very_same() -> None:
    assert decode_body(BODY, []).data is BODY


def test_what_is_hidden_in_a_whole_body_is_overwritten() -> None:
    found = decode_body(gzip.compress(b"my key: secret!"), ["gzip"], ((8, 14, "0011aabb"),))
    assert found == (b"my key: ******!", None)


@EACH
def test_a_body_that_only_claims_to_be_coded_stays_as_it_is(
    name: str, encode: Callable[[bytes], bytes]
) -> None:
    for plain in (JSON, b' [\n{"a": 1}]', b"[[1]]"):
        found = decode_body(plain, [name])
        assert found.data is plain
        assert found.fault is not None
    assert decode_body(encode(JSON), [name]).data == JSON


@EACH
def test_of_a_cut_body_what_came_is_decoded(name: str, encode: Callable[[bytes], bytes]) -> None:
    found = decode_body(encode(bytes(range(256)) * 900)[:-9], [name])
    assert found.data
    assert (bytes(range(256)) * 900).startswith(found.data)
    assert found.fault is not None


def test_a_body_of_unknown_coding_stays_as_it_is() -> None:
    found = decode_body(b"Uryyb", ["gzip", "rot13"])
    assert found.data == b"Uryyb"
    assert found.fault is not None
    assert "unknown coding 'rot13'" in found.fault.detail


@pytest.mark.slow
def test_of_a_whole_bomb_only_its_beginning_is_decoded() -> None:
    found = decode_body(gzip.compress(bytes(3 * RATIO_FLOOR)), ["gzip"])
    assert len(found.data) < 2 * RATIO_FLOOR
    assert found.fault is not None
    assert found.fault.kind is AnomalyKind.TOO_LARGE
