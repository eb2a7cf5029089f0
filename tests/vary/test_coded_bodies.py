import gzip
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.diagnose.decode import decode
from deltatape.model.exchange import EndReason, Framing, header
from deltatape.vary.coded_bodies import coded, plain, recoded
from helpers.mutated import TWO_EVENTS, broken_gzip, imported, pieces
from helpers.taped import taped

CODINGS = ("gzip", "deflate", "zstd", "br")
READS = st.lists(st.binary(min_size=1, max_size=200), min_size=1, max_size=6)


@given(READS, st.lists(st.sampled_from(CODINGS), min_size=1, max_size=2))
def test_each_read_of_a_coded_body_brings_what_it_brought(
    reads: list[bytes], codings: list[str]
) -> None:
    before = taped([(at, data) for at, data in enumerate(reads)])
    under = coded(before, codings)
    assert under
    assert under.response
    assert header(under.response.headers, "content-encoding") == ", ".join(codings).encode()
    again = plain(under)
    assert again
    assert again.reads == tuple(read._replace(line=None) for read in before.reads)
    assert again.end == before.end


def test_a_body_without_a_coding_is_plain() -> None:
    for exchange in (taped(TWO_EVENTS), taped((), framing=None), imported(b"x")):
        assert plain(exchange) is exchange
        assert coded(exchange, ()) is exchange


def test_a_body_that_is_cut_lacks_the_end_of_its_coding() -> None:
    for codings in (("gzip",), ("gzip", "gzip")):
        under = coded(taped(TWO_EVENTS, reason=EndReason.UPSTREAM_CLOSED), codings)
        assert under
        assert plain(under) is None
        assert decode(under).body == b"data: 1\n\ndata: 2\n\n"


def test_a_body_without_an_ending_counts_as_whole() -> None:
    under = coded(replace(taped(TWO_EVENTS), end=None), ("gzip",))
    assert under
    assert gzip.decompress(under.body) == b"data: 1\n\ndata: 2\n\n"


def test_a_body_that_cannot_be_decoded_is_not_plain() -> None:
    assert plain(broken_gzip()) is None
    unknown = taped(TWO_EVENTS, headers=((b"Content-Encoding", b"snappy"),))
    assert plain(unknown) is None


def test_reads_that_complete_nothing_are_left_out() -> None:
    body = gzip.compress(b"data: 1\n\n")
    under = taped([(1, body[:5]), (2, body[5:])], headers=((b"content-encoding", b"gzip"),))
    bare = plain(under)
    assert bare
    assert [(read.t_ns, read.data) for read in bare.reads] == [(2_000_000, b"data: 1\n\n")]


def test_a_length_is_that_of_the_coded_body() -> None:
    before = taped(TWO_EVENTS, framing=Framing.LENGTH, headers=((b"Content-Length", b"18"),))
    under = coded(before, ("gzip",))
    assert under
    assert under.response
    assert header(under.response.headers, "content-length") == b"%d" % len(under.body)
    assert [read.boundaries for read in under.reads] == [None, None]


def test_a_coding_that_is_not_known_or_not_installed_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert coded(taped(TWO_EVENTS), ("snappy",)) is None
    monkeypatch.setitem(sys.modules, "brotli", None)
    assert coded(taped(TWO_EVENTS), ("br",)) is None


def test_a_changed_body_is_coded_as_the_other_one_was() -> None:
    under = coded(taped(TWO_EVENTS), ("zstd",))
    assert under
    again = recoded(taped([(1, b"data: 3\n\n")]), under)
    assert again
    bare = plain(again)
    assert bare
    assert pieces(bare) == [b"data: 3\n\n"]


def test_an_exchange_without_a_head_stays_without() -> None:
    under = coded(replace(taped(TWO_EVENTS), response=None), ("gzip",))
    assert under
    assert under.response is None
