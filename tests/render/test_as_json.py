import json
from dataclasses import replace

from deltatape.diagnose.check import check
from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange
from deltatape.render.as_json import (
    FindingsDocument,
    calls_json,
    events_json,
    findings_json,
    reads_json,
    story_json,
    tapes_json,
)
from deltatape.render.listing import TapeRow
from deltatape.why import tell
from helpers.chat import FINISH, calls, choice, entry
from helpers.exchanges import TEXT, call, pasted, timed
from helpers.reports import report_on, unreadable, valid_findings, written

BAD = calls(entry(0, "c1", name="get", arguments="[1]"))


def test_findings_have_exactly_the_keys_of_the_contract() -> None:
    document = json.loads(findings_json(check(timed((0.1, BAD), (0.2, FINISH)))))
    assert document["version"] == 1
    (finding,) = document["findings"]
    assert list(finding) == [
        "code",
        "name",
        "severity",
        "blame",
        "confidence",
        "message",
        "tape",
        "line",
        "exchange",
        "event",
        "span",
        "t_ns",
        "evidence",
        "hint",
    ]
    assert (finding["code"], finding["severity"], finding["blame"]) == ("T006", "error", "upstream")
    assert finding["span"][0] == 0
    assert finding["t_ns"] == 100_000_000


def test_a_document_of_several_tapes_is_valid_and_the_same_as_at_once() -> None:
    bad = report_on(pasted(BAD, FINISH))
    good = report_on(pasted(*call(), FINISH))
    text = written(FindingsDocument(), [good, bad, unreadable(), bad])
    assert text == findings_json([bad.reported[0].finding] * 2)
    assert [each["code"] for each in valid_findings(text)] == ["T006", "T006"]
    assert written(FindingsDocument(), [good, good]) == findings_json([])
    assert written(FindingsDocument(), [unreadable()]) == ""


def test_no_text_in_it_is_a_command_of_a_ci_system() -> None:
    evil = "##[error]\n::error::"
    text = events_json(analyse(pasted(choice({"content": evil}))))
    assert "##[" not in text
    assert not [line for line in text.splitlines() if line.lstrip().startswith("::")]
    assert (
        json.loads(json.loads(text)["events"][0]["data"])["choices"][0]["delta"]["content"] == evil
    )


def test_a_finding_without_place_has_nulls() -> None:
    finding = replace(check(pasted(BAD, FINISH))[0], span=None, event=None, blame=None)
    (found,) = json.loads(findings_json([finding]))["findings"]
    assert (found["span"], found["event"], found["t_ns"], found["blame"]) == (None,) * 4


def test_a_story_has_exactly_the_keys_of_the_contract() -> None:
    document = json.loads(story_json(tell([timed((0.1, BAD), (0.2, FINISH))])))
    assert list(document) == [
        *("version", "verdict", "suspects", "clients", "timeline", "findings"),
    ]
    assert list(document["verdict"]) == ["blame", "confidence", "summary", "fix"]
    assert document["suspects"] == []
    assert document["timeline"][0] == {
        "t_ns": 0,
        "exchange": 1,
        "event": None,
        "what": "asks the model for an answer: 0 messages",
        "source": "app",
    }
    assert len(document["findings"]) == 1


def test_calls_have_exactly_the_keys_of_the_contract() -> None:
    document = json.loads(calls_json([analyse(pasted(*call(), FINISH))]))
    assert document["calls"] == [
        {
            "exchange": 1,
            "dialect": "openai-chat",
            "index": 0,
            "wire_index": 0,
            "id": "c1",
            "name": "get",
            "kind": "function",
            "arguments": '{"a":1}',
            "status": "complete",
            "repairs": [],
        }
    ]
    assert (document["server_calls"], document["text_calls"]) == ([], [])


def test_calls_in_the_text_are_told_apart_with_their_notation() -> None:
    written = '<tool_call>{"name": "get", "arguments": {}}</tool_call>'
    document = json.loads(calls_json([analyse(pasted(choice({"content": written}), FINISH))]))
    assert document["calls"] == []
    (call,) = document["text_calls"]
    assert (call["name"], call["kind"]) == ("get", "text")
    assert (call["family"], call["channel"], call["closed"]) == ("hermes", "text", True)


def events(exchange: Exchange) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(events_json(analyse(exchange)))["events"]
    return found


def test_events_carry_place_and_time_where_there_is_one() -> None:
    (event,) = events(timed((0.1, TEXT)))
    assert (event["event"], event["type"], event["t_ns"]) == (0, "message", 100_000_000)
    assert json.loads(str(event["data"])) == TEXT
    assert events(pasted(TEXT))[0]["t_ns"] is None


def test_reads_are_text_or_hexadecimal() -> None:
    reads = json.loads(reads_json(timed((0.1, b"a"), (0.2, b"\xff"))))["reads"]
    assert reads == [
        {"t_ns": 100_000_000, "bytes": 1, "data": "a"},
        {"t_ns": 200_000_000, "bytes": 1, "hex": "ff"},
    ]
    assert json.loads(reads_json(pasted(TEXT)))["reads"][0]["t_ns"] is None


def test_tapes_are_listed() -> None:
    row = TapeRow(
        path="a.tape",
        bytes=1,
        age_ns=2,
        exchanges=None,
        recording=False,
        overview=None,
        error="no tape",
    )
    (listed,) = json.loads(tapes_json([row]))["tapes"]
    assert listed == {
        "path": "a.tape",
        "bytes": 1,
        "age_ns": 2,
        "exchanges": None,
        "recording": False,
        "error": "no tape",
        "analysed": False,
        "apps": [],
        "models": [],
        "findings": None,
        "worst": None,
    }


def test_no_character_in_it_can_act_on_a_terminal_and_none_is_lost() -> None:
    evil = "\x1b\x7f\x9b\u202e\n"
    text = events_json(analyse(pasted(choice({"content": evil}))))
    assert text.isascii()
    assert text.replace("\n", "").isprintable()
    (event, _) = json.loads(text)["events"]
    assert json.loads(event["data"])["choices"][0]["delta"]["content"] == evil
