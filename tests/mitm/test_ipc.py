"""The line between the addon and the deltatape that started its mitmproxy."""

import asyncio
import json
import socket
from dataclasses import dataclass, field
from typing import cast

from deltatape.mitm.flows import AddonOptions
from deltatape.mitm.ipc import (
    CA_FILE,
    CA_FOLDER,
    CLIENT_CERTS,
    OPTIONS_VARIABLE,
    PROXY_LOGIN,
    AddonSocket,
    AnyMessage,
    Log,
    StopTaping,
    apply_options,
    options_variable,
)
from deltatape.model.tape_summary import LogStream
from deltatape.record.worker_messages import Said
from helpers.upstream import eventually, run


class End:
    """One end of a line, and what it heard."""

    def __init__(self) -> None:
        self.received: list[AnyMessage] = []
        self.gone = 0
        self.line = AddonSocket(self.received.append, self._left)

    def _left(self) -> None:
        self.gone += 1

    async def connect(self, sock: socket.socket) -> asyncio.BaseTransport:
        sock.setblocking(False)  # noqa: FBT003 - its only argument
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_unix_connection(lambda: self.line, sock=sock)
        return transport


def test_messages_arrive_in_order_those_before_the_line_stood_included() -> None:
    async def scenario() -> None:
        one, other = End(), End()
        left, right = socket.socketpair()
        early, late = Said(text="early\n", how="remark"), Said(text="ü" * 100_000, how="alarm")
        stop = StopTaping(reason="x", code=None, grace_s=0.5)
        one.line.send(early)
        ends = [await one.connect(left), await other.connect(right)]
        one.line.send(late)
        other.line.send(stop)
        await eventually(lambda: len(other.received) == 2 and len(one.received) == 1, "messages")
        assert other.received == [early, late]
        assert one.received == [stop]
        for end in ends:
            end.close()
        await asyncio.sleep(0)

    run(scenario())


def test_the_end_of_one_side_is_told_to_the_other() -> None:
    async def scenario() -> None:
        one, other = End(), End()
        left, right = socket.socketpair()
        transport = await one.connect(left)
        await other.connect(right)
        transport.close()
        await eventually(lambda: other.gone == 1, "the end")
        await asyncio.sleep(0)

    run(scenario())


def test_any_bytes_of_a_child_s_output_come_through() -> None:
    assert Log.of("stderr", b"\xff\n", 7).parts() == (LogStream.STDERR, b"\xff\n", 7)


@dataclass
class Chosen:
    """mitmproxy's options as far as they matter here."""

    ssl_verify_upstream_trusted_ca: str | None = None
    ssl_verify_upstream_trusted_confdir: str | None = None
    client_certs: str | None = None
    upstream_auth: str | None = None
    updates: list[dict[str, str]] = field(default_factory=list)

    def update_known(self, **values: str) -> None:
        """See mitmproxy's `OptManager`."""
        self.updates.append(values)


VALUES = {CA_FILE: "/c.pem", CA_FOLDER: "/c", CLIENT_CERTS: "/me.pem", PROXY_LOGIN: "ann:x"}


def taken(chosen: Chosen, environment: dict[str, str]) -> dict[str, str]:
    apply_options(cast("AddonOptions", chosen), environment)
    return {name: value for update in chosen.updates for name, value in update.items()}


def test_what_is_handed_on_is_set_and_the_variable_is_gone() -> None:
    environment = {"HOME": "/h", **options_variable(VALUES)}
    assert json.loads(environment[OPTIONS_VARIABLE]) == VALUES
    assert taken(Chosen(), environment) == VALUES
    assert environment == {"HOME": "/h"}


def test_what_the_user_has_set_stays_with_what_belongs_to_it() -> None:
    theirs = Chosen(ssl_verify_upstream_trusted_ca="/own.pem", upstream_auth="bob:y")
    assert taken(theirs, options_variable(VALUES)) == {CLIENT_CERTS: "/me.pem"}


def test_a_mitmproxy_that_deltatape_did_not_start_inherits_nothing() -> None:
    assert taken(Chosen(), {}) == {}
