"""A player in a thread of its own: at its URL as long as its context lasts, and counted exactly."""

import socket
import threading
from urllib.parse import urlsplit

import pytest

from deltatape.errors import UsageError
from deltatape.http1.listener import Address, Listener
from deltatape.match.schedule import ReplayTempo
from deltatape.model.exchange import EndReason
from deltatape.player.play_options import (
    MissedRequest,
    PlayedRequest,
    PlayOptions,
    PlayReport,
    RequestOutcome,
)
from deltatape.replay.playback import Playback, ReplayServer
from helpers.playing import ask
from helpers.taped import taped
from helpers.upstream import post

AT_ONCE = PlayOptions(tempo=ReplayTempo(factor=0.0))
ONE, TWO = taped(body={"a": 1}), taped(body={"a": 2}, number=2)


def test_it_plays_and_tells_and_reports_also_when_it_is_over() -> None:
    told: list[RequestOutcome] = []
    with Playback((ONE, TWO), AT_ONCE, told.append) as playback:
        assert ask(playback.url, ONE.request.body) == (200, ONE.body)
        assert ask(playback.url, b'{"a": 3}')[0] == 400
        assert playback.report.unplayed == (TWO,)
    assert [type(each) for each in told] == [PlayedRequest, MissedRequest]
    assert playback.report == PlayReport(
        played=(told[0],),  # type: ignore[arg-type]
        missed=(told[1],),  # type: ignore[arg-type]
        unplayed=(TWO,),
    )


def test_a_request_that_nobody_waited_for_is_counted() -> None:
    with Playback((ONE,), AT_ONCE) as playback:
        parts = urlsplit(playback.url)
        with socket.create_connection((parts.hostname, parts.port)) as sock:
            sock.sendall(post(ONE.request.body))
            assert len(playback.report.played) == 1


def test_what_plays_for_ever_is_cut() -> None:
    held = taped(reason=EndReason.TIMEOUT)
    with Playback((held,), AT_ONCE) as playback:
        parts = urlsplit(playback.url)
        with socket.create_connection((parts.hostname, parts.port), timeout=10) as sock:
            sock.sendall(post(held.request.body))
            got = b""
            while held.body not in got:
                got += sock.recv(65536)
            playback.cut()
            assert sock.recv(65536) == b""
        with pytest.raises(ConnectionRefusedError):
            ask(playback.url, b"")


def test_the_thread_ends_with_the_context_whatever_is_open() -> None:
    with Playback((taped(reason=EndReason.TIMEOUT),), AT_ONCE) as playback:
        parts = urlsplit(playback.url)
        sock = socket.create_connection((parts.hostname, parts.port))
        sock.sendall(post(b"{}"))
        assert len(playback.report.played) == 1
    names = {thread.name for thread in threading.enumerate()}
    assert "deltatape player" not in names
    assert playback.report.unplayed == ()
    playback.cut()
    sock.close()


def test_a_taken_address_is_told_to_who_asked() -> None:
    with Playback((), AT_ONCE) as first:
        port = urlsplit(first.url).port
        assert port is not None
        second = Playback((), AT_ONCE, address=Address("127.0.0.1", port))
        with pytest.raises(UsageError, match="cannot listen on 127"), second:
            raise AssertionError


class Stubborn:
    """A machine that cannot finish."""

    def __init__(self) -> None:
        self.listener = Listener()
        self.report = PlayReport()

    async def start(self, address: Address) -> None:
        """See `ReplayServer`: it listens nowhere."""

    async def stop(self, *, grace_s: float = 0.0) -> None:
        """See `ReplayServer`."""
        raise UsageError(f"x.tape: was changed ({grace_s:g})")


def test_what_goes_wrong_at_the_end_is_told_to_who_ends_it() -> None:
    machine: ReplayServer = Stubborn()
    with (
        pytest.raises(UsageError, match=r"was changed \(0\)"),
        Playback((), AT_ONCE, machine=machine) as playback,
    ):
        assert playback.report.whole
