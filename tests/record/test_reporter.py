"""What a recorder tells the person who started it."""

from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.clock import Clock, parse_rfc3339
from deltatape.doctor.hardcoded import places_of_host
from deltatape.doctor.sources import Limits
from deltatape.environment.application import plan
from deltatape.gateway.routes import Refusal, Routes, parse_upstream
from deltatape.gateway.tunnel import TunnelledConnection
from deltatape.live.analyzer import LiveAnalyzer
from deltatape.live.messages import ExchangeReport
from deltatape.model.finding import Severity
from deltatape.record.reporter import Beginning, Reporter, introduce, no_traffic
from deltatape.render.json_document import finding_object
from deltatape.render.summary import live_lines
from helpers.incidents import EMPTY, FIXED, exchange
from helpers.tapes import StillClock


class MovingClock(StillClock):
    """A wall clock that is set by hand."""

    wall = 1_795_293_361_000_000_000

    def wall_ns(self) -> int:
        return self.wall


class Told(Reporter):
    """A reporter and its lines."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.lines: list[str] = []
        super().__init__(self.lines.append, clock)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def report(path: Path, number: int) -> ExchangeReport:
    result = LiveAnalyzer().analyse("named", exchange(path, number))
    return ExchangeReport(
        key=1,
        number=number,
        lines=live_lines(result.analysis, result.findings, "named"),
        findings=[finding_object(finding) for finding in result.findings],
    )


def test_exchanges_and_findings_are_told_and_counted() -> None:
    reporter = Told()
    reporter.exchange("named", 1, report(FIXED, 1))
    assert reporter.worst is None
    reporter.exchange("named", 1, report(EMPTY, 1))
    assert (reporter.exchanges, reporter.with_findings) == (2, 1)
    assert reporter.worst is Severity.ERROR
    assert "named#1 POST /v1/chat/completions 200" in reporter.text
    assert "    error T001 empty-arguments (" in reporter.text


def test_what_was_not_analysed_is_told_as_that() -> None:
    reporter = Told()
    reporter.exchange("named", 3, None)
    assert reporter.lines == ["named#3 ended; not analysed yet: run `deltatape check`"]
    assert reporter.unanalysed == 1
    reporter.exchange("named", 4, report(FIXED, 1))
    reporter.summarise("x.tape", (0, 0), (), "x.tape")
    assert "NOT ANALYSED: 1 exchange of 2; run `deltatape check x.tape`" in reporter.lines
    silences = Told()
    silences.summarise("x.tape", (0, 0), (), "tapes")
    assert silences.lines[1] == (
        "NOT ANALYSED: whether every tool call was answered; run `deltatape check tapes`"
    )


def test_trouble_and_refusals_are_told() -> None:
    reporter = Told()
    reporter.alarm("no space")
    reporter.refused(Refusal(403, "key_mismatch", "wrong key"))
    assert reporter.trouble == "no space"
    assert reporter.lines == [
        "TAPING IN TROUBLE: no space",
        "refused a request (403 key_mismatch): wrong key",
    ]


def test_trouble_that_is_over_is_told_with_its_times() -> None:
    clock = MovingClock()
    reporter = Told(clock)
    reporter.taping(works=True)
    assert (reporter.lines, reporter.since) == ([], "")
    reporter.alarm("the disk hangs")
    begun = reporter.since
    clock.wall += 10**9
    reporter.alarm("the disk is too slow")
    reporter.taping(works=False)
    assert (reporter.present, reporter.since) == ("the disk is too slow", begun)
    reporter.taping(works=True)
    assert reporter.present == ""
    assert reporter.past == ("the disk is too slow", begun, reporter.since)
    assert parse_rfc3339(reporter.since) - parse_rfc3339(begun) == 10**9
    assert reporter.lines[-1] == (
        f"taping works again; it was in trouble since {begun}: the disk is too slow"
    )
    assert reporter.trouble  # what was lost stays lost: --strict
    reporter.taping(works=False)  # its alarm came while the last one was cleared
    assert reporter.present == "the disk is too slow"
    reporter.taping(works=True)
    reporter.lasting_alarm("old tapes cannot be deleted")
    reporter.taping(works=True)
    assert reporter.present == "old tapes cannot be deleted"


def test_what_went_past_is_told_with_the_place_and_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "llm.py").write_text(
        'import os\nfrom openai import OpenAI\n\nc = OpenAI(base_url="https://openrouter.ai/api/v1")\n'
    )
    reporter = Told()
    places = places_of_host(tmp_path, "openrouter.ai", Limits())
    reporter.bypassed(TunnelledConnection(host="openrouter.ai", port=443, llm="openrouter"), places)
    assert reporter.lines[0] == (
        "NOT TAPED: your app went to openrouter.ai past deltatape; see llm.py:4"
    )
    assert "os.environ.get(" in reporter.text


def test_a_host_that_the_project_does_not_name_leads_to_doctor() -> None:
    reporter = Told()
    reporter.bypassed(TunnelledConnection(host="api.x.ai", port=443, llm="xai"), ())
    assert "see" not in reporter.lines[0]
    assert "deltatape doctor" in reporter.text
    assert "--via mitm" in reporter.text


def test_remarks_alone_are_told_and_do_not_count() -> None:
    reporter = Told()
    told = report(EMPTY, 1)
    remark = {**told.findings[0], "severity": "info"}
    reporter.exchange("named", 1, replace(told, findings=[remark]))
    assert (reporter.exchanges, reporter.with_findings, reporter.with_info) == (1, 0, 1)
    assert reporter.worst is Severity.INFO
    reporter.summarise("", (0, 0), ())
    assert reporter.lines[-1] == "1 exchange taped, 0 with findings, 1 with info only"


def test_the_summary_says_what_is_not_on_the_tape() -> None:
    reporter = Told()
    reporter.exchanges = 2
    reporter.summarise("x.tape", (3, 400), ["openrouter.ai"])
    assert reporter.lines == [
        "2 exchanges taped, 0 with findings",
        "NOT ON THE TAPE: 3 records, 400 bytes; the streams themselves were not touched",
        "NOT TAPED: what went to openrouter.ai past deltatape",
        "tape: x.tape",
        "next: deltatape why x.tape",
    ]
    quiet = Told()
    quiet.summarise("", (0, 0), ())
    assert quiet.lines == ["0 exchanges taped, 0 with findings"]
    empty = Told()
    empty.summarise("x.tape", (0, 0), ())
    assert empty.lines[-1] == "next: deltatape doctor"


def test_what_went_past_and_was_not_reached_says_why() -> None:
    reporter = Told()
    reporter.bypassed(
        TunnelledConnection(
            host="api.x.ai", port=443, llm="xai", failure="the name has no address"
        ),
        (),
    )
    assert "    and could not reach it: the name has no address" in reporter.lines


BASE = "http://127.0.0.1:8377"


def said(
    *upstreams: str, base: str = BASE, tape: str = "x.tape", alone: bool = True, **more: bool
) -> str:
    given = [parse_upstream(each) for each in upstreams]
    planned = plan(base, {}, (), given)
    beginning = Beginning(
        base=base,
        tape=tape,
        routes=Routes(given),
        variables=planned.variables,
        alone=alone,
        **more,
    )
    return "\n".join(introduce(beginning))


def test_it_says_where_it_tapes_where_it_forwards_and_what_to_set() -> None:
    text = said("corp=https://llm.corp.example/v2")
    assert "tape     x.tape" in text
    assert f"url      {BASE}/NAME forwards to the provider NAME: openai anthropic" in text
    assert f"{BASE}/corp forwards to https://llm.corp.example/v2" in text
    assert f"{BASE}/openai ->" not in text
    assert f"  set      OPENAI_BASE_URL={BASE}/openai/v1\n" in text
    assert f"           ANTHROPIC_BASE_URL={BASE}/anthropic" in text
    assert "Ctrl-C ends the tape" in text
    assert "same token" not in text


def test_one_upstream_serves_everything_and_says_its_path_once() -> None:
    text = said("http://127.0.0.1:9")
    assert f"url      {BASE} forwards to http://127.0.0.1:9" in text
    assert f"OPENAI_BASE_URL={BASE}/v1\n" in text
    assert f"OPENAI_BASE_URL={BASE}\n" in said("http://127.0.0.1:9/v1")


def test_around_a_command_nothing_has_to_be_set() -> None:
    text = said(alone=False)
    assert "set" not in text
    assert "Ctrl-C" not in text
    assert "anthropic" not in text


def test_without_a_tape_it_does_not_name_one() -> None:
    assert "tape     none: see above" in said(tape="")


def test_a_unix_socket_is_no_base_url() -> None:
    text = said(base="http+unix://%2Frun%2Fx.sock")
    assert "OPENAI_BASE_URL" not in text
    assert "Unix socket" in text


def test_a_port_that_others_can_reach_says_so() -> None:
    assert "from other machines" in said(guarded=True)


@pytest.mark.parametrize(
    ("clients", "child", "clue"),
    [
        (1, None, "is it speaking HTTPS to this HTTP port?"),
        (0, None, "A container reaches http://127.0.0.1:8377 only on the host's network"),
        (0, "npm", "npm has not called a provider through http://127.0.0.1:8377"),
    ],
)
def test_no_traffic_says_what_to_look_at(clients: int, child: str | None, clue: str) -> None:
    text = no_traffic(BASE, clients=clients, child=child)
    assert clue in text
    assert ("deltatape doctor" in text) == (clients == 0)
