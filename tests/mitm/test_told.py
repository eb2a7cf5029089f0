"""What the user is told about a mitmproxy."""

from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.gateway.outbound import outbound_from
from deltatape.mitm.mitmdump import Ended, MitmOptions, Started
from deltatape.mitm.told import Told, introduce, what_to_set

STARTED = Started(url="http://127.0.0.1:1", tape="t/x.tape", ca=Path("/c/ca.pem"), version="11.0.2")
REGULAR = MitmOptions(host="127.0.0.1", port=0, upstream=None, to=Path("t"), hosts=("*.b",))
REVERSE = MitmOptions(host="127.0.0.1", port=1, upstream="https://api.openai.com", to=Path("t"))
IN_ORDER = Ended(in_order=True, code=0, exchanges=2, with_findings=1)


class Screen:
    """What was told, and who tells."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.told = Told(self.lines.append, 5.0)


def test_a_proxy_says_what_it_looks_into_and_what_to_set() -> None:
    lines = [
        *introduce(STARTED, REGULAR, alone=True),
        *what_to_set(STARTED, REGULAR, Path("/s/bundle.pem")),
    ]
    assert lines[0].endswith("is recording by mitmproxy 11.0.2; Ctrl-C ends the tape")
    assert "  tape     t/x.tape" in lines
    assert "  decrypt  the hosts of LLM providers *.b; all else passes undecrypted" in lines
    assert "  set      HTTPS_PROXY=http://127.0.0.1:1" in lines
    assert any("SSL_CERT_FILE=/s/bundle.pem" in line for line in lines)
    assert any("node_proxy.cjs" in line for line in lines)
    assert "--listen HOST:PORT keeps it" in lines[-1]


def test_a_reverse_proxy_says_where_it_forwards() -> None:
    lines = [*introduce(STARTED, REVERSE, alone=False), *what_to_set(STARTED, REVERSE, None)]
    assert lines[0].endswith("is recording by mitmproxy 11.0.2")
    assert "  forward  http://127.0.0.1:1 -> https://api.openai.com" in lines
    assert lines[-1].startswith("  set      OPENAI_BASE_URL=http://127.0.0.1:1/v1")


def test_the_company_s_proxy_is_told_and_that_no_proxy_does_not_hold_there() -> None:
    environment = {"HTTPS_PROXY": "http://ann:fake@proxy.test:3128", "NO_PROXY": "intra.test"}
    lines = [*introduce(STARTED, behind(REGULAR, environment), alone=True)]
    assert lines[-2] == "  through  http://proxy.test:3128 (HTTPS_PROXY)"
    assert "mitmproxy heeds no NO_PROXY, apps do" in lines[-1]
    lines = [*what_to_set(STARTED, behind(REGULAR, environment), Path("/s/bundle.pem"))]
    assert "           NO_PROXY=localhost,127.0.0.1,::1  (besides yours)" in lines


def test_a_proxy_that_one_upstream_is_not_reached_by_is_told() -> None:
    environment = {"https_proxy": "http://ann:fake@proxy.test:3128", "NO_PROXY": ""}
    lines = [*introduce(STARTED, behind(REVERSE, environment), alone=True)]
    assert lines[-1].startswith("  note     https_proxy is not used: mitmproxy reaches an --upst")
    plain = replace(REVERSE, upstream="http://llm.test")
    for options, more in ((plain, {}), (REVERSE, {"NO_PROXY": "openai.com"})):
        lines = [*introduce(STARTED, behind(options, {**environment, **more}), alone=True)]
        assert lines[-1].startswith("  forward  ")


def behind(options: MitmOptions, environment: dict[str, str]) -> MitmOptions:
    return replace(options, outbound=outbound_from(environment))


def test_nothing_to_tape_is_told_with_what_was_seen() -> None:
    for seen, hosts, expected in (
        ((), (), "does the app read HTTPS_PROXY"),
        (("client",), (), "sent no request for an LLM host"),
        (("client",), ("pypi.org",), "undecrypted, not taped: pypi.org; --hosts NAME tapes one"),
        (("client",), tuple("abcdefg"), "a, b, c, d, e and 2 more"),
    ):
        screen = Screen()
        for what in seen:
            screen.told.traffic(what)
        for host in hosts:
            screen.told.passed(host)
        screen.told.remind(STARTED.url)
        (line,) = screen.lines
        assert line.startswith("nothing to tape for 20 s")
        assert expected in line
    screen = Screen()
    screen.told.traffic("exchange")
    screen.told.remind(STARTED.url)
    assert screen.lines == []


def test_streams_that_may_go_on_are_told() -> None:
    screen = Screen()
    screen.told.stopping(0)
    screen.told.stopping(2)
    assert screen.lines == ["stopping: 2 streams may go on for 5 s; Ctrl-C again cuts"]


def test_trouble_is_told_at_once() -> None:
    screen = Screen()
    screen.told.line("#1 POST")
    screen.told.alarm("disk full")
    assert screen.lines == ["#1 POST", "TAPING IN TROUBLE: disk full"]
    assert screen.told.trouble


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (
            IN_ORDER,
            [
                "2 exchanges taped, 1 with findings",
                "tape: t/x.tape",
                "next: deltatape why t/x.tape",
            ],
        ),
        (Ended(in_order=True, code=0), ["0 exchanges taped, not analysed live", "tape: t/x.tape"]),
        (
            Ended(in_order=True, code=0, exchanges=1, lost_records=2, lost_bytes=30),
            [
                "1 exchange taped, not analysed live",
                "NOT ON THE TAPE: 2 records, 30 bytes; the streams themselves were not touched",
                "tape: t/x.tape",
                "next: deltatape why t/x.tape",
            ],
        ),
        (
            Ended(in_order=False, code=-9),
            [
                (
                    "TAPING IN TROUBLE: mitmproxy ended by itself (code -9); what it had written is"
                    " on the tape"
                ),
                "tape: t/x.tape",
                "next: deltatape why t/x.tape",
            ],
        ),
    ],
)
def test_the_last_words(ended: Ended, expected: list[str]) -> None:
    screen = Screen()
    screen.told.summarise(ended, STARTED)
    assert screen.lines == expected
    assert screen.told.trouble is not ended.in_order


def test_hosts_that_passed_are_named_when_nothing_was_taped() -> None:
    screen = Screen()
    screen.told.passed("example.com")
    without = Started(url="u", tape="", ca=Path("c"), version="12")
    screen.told.summarise(Ended(in_order=True, code=0), without)
    assert screen.lines[1:] == [
        "passed undecrypted, not taped: example.com; --hosts NAME tapes one"
    ]
