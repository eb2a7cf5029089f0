import json

from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange
from deltatape.render.as_json import (
    calls_json,
    events_json,
    explanation_json,
    reads_json,
    tapes_json,
)
from deltatape.render.listing import TapeRow
from deltatape.why import explain
from helpers.chat import FINISH, calls, choice, entry
from helpers.exchanges import (
    TEXT,
    USER,
    asks,
    call,
    pasted,
    result,
    timed,
)
from helpers.explanations import accused, lost_arguments, suspect, tried

ORPHAN = (asks(USER, result("c1")), [FINISH])
BAD = calls(entry(0, "c1", name="get", arguments="[1]"))


def test_a_story_has_exactly_the_keys_of_the_contract() -> None:
    document = json.loads(explanation_json(explain([timed((0.1, BAD), (0.2, FINISH))])))
    assert list(document) == [
        *("version", "verdict", "suspects", "clients", "timeline", "findings", "attempts"),
    ]
    assert list(document["verdict"]) == [
        *("blame", "confidence", "summary", "fix", "kind", "shown", "code", "possible"),
    ]
    assert document["verdict"]["kind"] == "blamed"
    assert document["attempts"] is None
    assert document["suspects"] == []
    assert document["timeline"][0] == {
        "t_ns": 0,
        "exchange": 1,
        "event": None,
        "what": "requests an answer from the model: 0 messages",
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


def test_suspects_and_clients_have_exactly_the_keys_of_the_contract() -> None:
    clients = (tried("a", throws="KeyError: 'index'"), tried("b", problem="no npm"))
    explanation = accused(lost_arguments(), suspect(), tried=clients)
    document = json.loads(explanation_json(explanation))
    assert document["suspects"] == [
        {
            "name": "single-current-call",
            "mistakes": [
                {
                    "axis": "key",
                    "value": "single",
                    "says": "keeps one call",
                    "fix": "keep a call per index",
                }
            ],
            "exact": True,
            "drop": False,
            "says": "keeps one call where the stream has two",
            "fix": "keep a call per index",
            "source": "",
            "made": {
                "calls": [{"id": "c1", "name": "get", "arguments": ""}],
                "errors": [],
                "text": None,
            },
        }
    ]
    made = {"calls": [], "errors": ["KeyError: 'index'"], "text": None}
    assert document["clients"] == [
        {"name": "a", "differs": True, "problem": None, "made": made},
        {"name": "b", "differs": None, "problem": "no npm", "made": {**made, "errors": []}},
    ]
