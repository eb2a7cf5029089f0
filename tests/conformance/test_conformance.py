"""What a client and its provider get through deltatape is what they get without it; raw sockets.

The table of all cases, with nginx beside, is docs/conformance.md.
"""

import asyncio
from pathlib import Path

import pytest

from deltatape.record.control import Control
from helpers.conformance import REFUSED, Case, direct, is_refusal, recorded
from helpers.conformance_cases import GROUPS, HOSTS, ORIGINS
from helpers.upstream import connect, run

CASES = [case for cases in GROUPS.values() for case in cases]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_arrives_as_without_deltatape_or_otherwise_as_documented(
    case: Case, tmp_path: Path
) -> None:
    expected = asyncio.run(direct(case))
    got, replay = asyncio.run(recorded(case, tmp_path))
    if case.deltatape == REFUSED:
        assert got.upstream.got == b""
        assert is_refusal(got.client)
        assert replay is not None
        assert is_refusal(replay)
        return
    if case.deltatape:
        assert got.seen(case) != expected.seen(case)
    else:
        assert got.seen(case) == expected.seen(case)
    if case.replay:
        assert replay != got.client
    elif replay is not None:
        assert replay == got.client


@pytest.mark.parametrize("path", [b"/health", b"/status"])
@pytest.mark.parametrize(
    "fields",
    [
        *((b"Host: " + host,) for host in HOSTS),
        *((b"Host: HOST", *(b"Origin: " + origin for origin in origins)) for origins in ORIGINS),
    ],
)
def test_the_control_port_refuses_foreign_hosts_and_pages(
    path: bytes, fields: tuple[bytes, ...]
) -> None:
    request = b"\r\n".join((b"GET %b HTTP/1.1" % path, *fields, b"Connection: close", b"", b""))

    async def scenario() -> None:
        control = Control(dict)
        url = await control.start("127.0.0.1", 0)
        client = await connect(int(url.rpartition(":")[2]))
        await client.send(request.replace(b"HOST", b"127.0.0.1"))
        assert (await client.rest())[0].startswith(b"HTTP/1.1 403 ")
        await control.stop()

    run(scenario())
