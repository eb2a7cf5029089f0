import json
from collections import Counter
from dataclasses import replace

from deltatape.model.exchange import EndReason
from deltatape.model.exchange_row import ExchangeRow, Mark, ShownFinding, WorstFinding
from deltatape.model.finding import Blame, Confidence, Severity
from deltatape.model.token_usage import TokenCount
from deltatape.render.exchange_rows import (
    ExchangesDocument,
    exchange_lines,
    trend_lines,
    trends_json,
)
from deltatape.render.lines import plain
from deltatape.why.trends import Trends

MS = 1_000_000
WORST = WorstFinding(
    code="C002",
    name="arguments-changed-by-app",
    severity=Severity.ERROR,
    blame=Blame.APP,
    confidence=Confidence.PROVEN,
)
ROW = ExchangeRow(
    tape="a.tape",
    exchange=2,
    at="2026-11-21T23:15:37.123Z",
    t_ns=5,
    provider="openai",
    model="gpt-fake",
    dialect="openai-chat",
    method="POST",
    target="/v1/chat/completions",
    status=200,
    duration_ns=1200 * MS,
    first_event_ns=350 * MS,
    tokens=TokenCount(input=61, output=None),
    calls=2,
    finish="tool_calls",
    ending=EndReason.COMPLETE,
    open=False,
    findings=3,
    codes=("C002", "D001"),
    worst=WORST,
    dead_zones=2,
    dead_ns=4500 * MS,
    thread=1,
    before=1,
    marks=(Mark.RETRY, Mark.LOOP),
)


def shown(*rows: ExchangeRow, width: int = 200) -> list[str]:
    return plain(exchange_lines("a.tape", rows, width)).splitlines()


def test_an_exchange_is_a_line_below_the_name_of_its_tape() -> None:
    tape, heads, line = shown(ROW)
    assert tape == "a.tape"
    assert heads.split("  ")[0] == "exchange"
    assert line == (
        "#2        2026-11-21 23:15:37  openai    gpt-fake  1.2 s       350 ms  61 > ?"
        "      2  tool_calls  error C002 arguments-changed-by-app +2  after #1: retry, loop"
    )


def test_what_a_request_shows_about_another_reply_is_no_finding_of_its_own() -> None:
    shows = ShownFinding(finding=WORST, exchange=1)
    row = replace(ROW, findings=0, codes=(), worst=None, shows=(shows,))
    assert "shows C002 of #1  after #1" in shown(row)[-1]
    assert "shows C002 of #1 +1  after #1" in shown(replace(row, shows=(shows, shows)))[-1]
    assert "error C002 arguments-changed-by-app +2" in shown(replace(ROW, shows=(shows,)))[-1]
    document = ExchangesDocument()
    (told,) = json.loads(document.add([row]) + document.end())["exchanges"]
    assert (told["findings"], told["worst"]) == (0, None)
    assert told["shows"] == [
        {
            "code": "C002",
            "name": "arguments-changed-by-app",
            "severity": "error",
            "blame": "app",
            "confidence": "proven",
            "exchange": 1,
        }
    ]


def test_an_exchange_that_stands_for_itself_is_short() -> None:
    alone = replace(
        ROW,
        at=None,
        provider=None,
        tokens=None,
        first_event_ns=None,
        calls=0,
        findings=0,
        worst=None,
        before=None,
        marks=(),
    )
    assert shown(alone)[1:] == [
        "exchange  model      took  ending      worst finding",
        "#2        gpt-fake  1.2 s  tool_calls  healthy",
    ]
    assert shown() == ["a.tape", "no exchanges"]


def test_the_ending_that_matters_is_shown() -> None:
    cut = replace(ROW, ending=EndReason.UPSTREAM_CLOSED)
    limit = replace(cut, status=429)
    running = replace(ROW, open=True, ending=None, duration_ns=None)
    unknown = replace(ROW, ending=None, finish=None)
    lines = shown(cut, limit, running, unknown)[2:]
    assert "upstream closed" in lines[0]
    assert "status 429" in lines[1]
    assert "  open  " in lines[2]
    assert not {"tool_calls", "None"} & set(lines[3].split())


def test_a_narrow_page_gets_fewer_columns_and_whole_lines() -> None:
    for width in (60, 80, 100, 140):
        lines = shown(ROW, replace(ROW, exchange=30000), width=width)
        assert max(map(len, lines)) <= width
        assert "#30000" in lines[3]
        assert "error C002 arg" in lines[3]
    assert "tokens" not in shown(ROW, width=110)[1]
    assert shown(replace(ROW, tokens=None), width=60) == shown(ROW, width=60)


def test_names_of_a_tape_are_escaped() -> None:
    hostile = replace(ROW, model="m\x1b[31m", provider="\u202e", finish="a\nb")
    lines = shown(hostile)
    assert len(lines) == 3
    assert r"m\x1b[31m" in lines[2]
    assert r"\u202e" in lines[2]


def test_the_document_is_written_in_parts() -> None:
    document = ExchangesDocument()
    parts = [document.add([ROW]), document.add([]), document.add([ROW, ROW]), document.end()]
    read = json.loads("".join(parts))
    assert read["version"] == 1
    assert [each["exchange"] for each in read["exchanges"]] == [2, 2, 2]
    (first, *_) = read["exchanges"]
    assert first["tokens"] == {"input": 61, "output": None}
    assert first["worst"] == {
        "code": "C002",
        "name": "arguments-changed-by-app",
        "severity": "error",
        "blame": "app",
        "confidence": "proven",
    }
    assert (first["ending"], first["marks"]) == ("complete", ["retry", "loop"])
    assert json.loads(ExchangesDocument().end()) == {"version": 1, "exchanges": []}


def test_secrets_are_hidden_in_the_document() -> None:
    secret = "sk-" + "aB3dE5fG7hJ9kL1m" * 3
    document = ExchangesDocument()
    assert secret not in document.add([replace(ROW, target=f"/?key={secret}", worst=None)])


def test_trends_are_a_line_for_each_day_provider_and_model() -> None:
    healthy = replace(ROW, at=None, findings=0, codes=(), dead_zones=0, dead_ns=0, provider=None)
    trends = Trends([ROW, replace(healthy, model=None), ROW])
    assert plain(trend_lines(trends, 100)).splitlines() == [
        "day         provider  model     exchanges  with findings  dead zones  findings",
        "unknown                                 1",
        "2026-11-21  openai    gpt-fake          2              2    4, 9.0 s  C002 2, D001 2",
    ]
    assert plain(trend_lines(Trends())) == "no exchanges\n"


def test_only_the_most_frequent_codes_are_named() -> None:
    codes = tuple(Counter(f"T00{number}" for number in range(1, 10)))
    line = plain(trend_lines(Trends([replace(ROW, codes=codes)]), 200)).splitlines()[1]
    assert line.endswith("T005 1, T006 1, 3 more")


def test_the_json_of_trends_names_its_codes() -> None:
    read = json.loads(trends_json(Trends([ROW])))
    assert read["codes"] == [
        {"code": "D001", "name": "stall", "severity": "warning"},
        {"code": "C002", "name": "arguments-changed-by-app", "severity": "error"},
    ]
    (trend,) = read["trends"]
    assert (trend["day"], trend["dead_zones"], trend["dead_ns"]) == ("2026-11-21", 2, 4500 * MS)
    assert trend["codes"] == [{"code": "C002", "exchanges": 1}, {"code": "D001", "exchanges": 1}]
