"""C023 to C026: the model's call, the server's, and the result in the history."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.conversation import ConversationHistory, check_conversation
from deltatape.diagnose.digest import digest
from deltatape.model.exchange import EndReason
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.store.reader import open_tape
from helpers.chat import FINISH
from helpers.exchanges import assistant, result
from helpers.rule_recordings.build import (
    CITY,
    GENT,
    ONE_CALL,
    ROME,
    TWO_CALLS,
    chat,
    next_turn,
    tool,
    weather_call,
)
from helpers.rule_recordings.tape import ScriptedExchange, tape_of
from helpers.rule_recordings.tool_servers import (
    ANSWER,
    LIST,
    answered,
    listing,
    message,
    not_asked,
    ordered,
    served,
    told,
    witnesses,
)

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
CODES = {"C023", "C024", "C025", "C026"}


@pytest.fixture
def findings(tmp_path: Path) -> "Findings":
    return Findings(tmp_path)


class Findings:
    """Finds what the rules say about exchanges."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "x.tape"

    def __call__(self, exchanges: Sequence[ScriptedExchange]) -> list[Finding]:
        self._path.write_bytes(tape_of(exchanges, 1))
        digests = [digest(each) for each in open_tape(self._path)]
        digests.sort(key=lambda each: each.exchange)
        history = ConversationHistory()
        live = [one for each in digests for one in history.add(each) if one.code in CODES]
        found = [one for one in check_conversation(digests) if one.code in CODES]
        assert live == found
        return found

    def one(self, exchanges: Sequence[ScriptedExchange]) -> Finding:
        (found,) = self(exchanges)
        return found


def city(text: str) -> str:
    return json.dumps({"city": text}, ensure_ascii=False)


def changed(
    delivered: str, asked: str, repeated: str | None = None, *, needs: Sequence[str] = ()
) -> list[ScriptedExchange]:
    """A call that its server was asked for with other arguments."""
    free = tool("get_weather", {"properties": {"city": TEXT, "days": NUMBER}, "required": needs})
    return [
        LIST,
        chat(*weather_call(delivered), FINISH, tools=[free]),
        served(asked, ANSWER),
        told(ANSWER, delivered if repeated is None else repeated),
    ]


FRAGMENT_LOST = [
    LIST,
    chat(*weather_call('{"city":"Ge', "nt", '"}'), FINISH),
    served(city("Ge"), ANSWER),
    told(ANSWER),
]


@pytest.mark.parametrize(
    ("exchanges", "confidence", "severity"),
    [
        (ordered(9007199254740992), Confidence.PROVEN, Severity.ERROR),
        (changed(city("Olá"), city("OlÃ¡")), Confidence.PROVEN, Severity.ERROR),
        (witnesses("{}"), Confidence.PROVEN, Severity.ERROR),
        (changed(GENT, "{}"), Confidence.POSSIBLE, Severity.WARNING),
        (witnesses(city("Bruges")), Confidence.POSSIBLE, Severity.WARNING),
        (changed('{"days":500}', '{"days":100}'), Confidence.POSSIBLE, Severity.WARNING),
        (changed(city("next Monday"), city("2026-11-30")), Confidence.POSSIBLE, Severity.WARNING),
        (FRAGMENT_LOST, Confidence.LIKELY, Severity.WARNING),
        (
            changed('{"city":"Gent","days":3}', GENT, needs=["days"]),
            Confidence.POSSIBLE,
            Severity.INFO,
        ),
        (changed(GENT, city("Bruges"), city("Rome")), Confidence.POSSIBLE, Severity.WARNING),
    ],
)
def test_changed_arguments_are_the_apps(
    findings: Findings,
    exchanges: Sequence[ScriptedExchange],
    confidence: Confidence,
    severity: Severity,
) -> None:
    found = findings.one(exchanges)
    assert (found.code, found.blame) == ("C023", Blame.APP)
    assert (found.confidence, found.severity) == (confidence, severity)
    assert "but the app asked the tool server for" in found.message
    assert found.against is not None


@pytest.mark.parametrize(
    ("delivered", "asked"),
    [
        (city("notes.txt"), city("/home/u/notes.txt")),
        (city("./notes/"), city("/home/u/notes")),
        ('{"days":"3"}', '{"days":"3","city":"x"}'),
        (city("<CITY>"), city("Gent")),
        (GENT, '{"input":{"city":"Gent"}}'),
    ],
)
def test_what_clients_do_on_purpose_is_silent(
    findings: Findings, delivered: str, asked: str
) -> None:
    assert findings(changed(delivered, asked)) == []


def test_an_incomplete_call_is_not_compared(findings: Findings) -> None:
    exchanges = [LIST, chat(*weather_call('{"city":'), FINISH), served(GENT, ANSWER), told(ANSWER)]
    assert findings(exchanges) == []


@pytest.mark.parametrize(
    "name",
    ["mcp__weather__get_weather", "weather.get_weather", "weather-get-weather", "get_weather"],
)
def test_clients_put_the_servers_name_in_front(findings: Findings, name: str) -> None:
    call = chat(*weather_call(GENT, name=name), FINISH, tools=[tool(name, CITY)])
    found = findings.one([LIST, call, served("{}", ANSWER), told(ANSWER, name=name)])
    assert found.code == "C023"


def test_a_tool_that_no_server_has_is_not_compared(findings: Findings) -> None:
    call = chat(*weather_call(GENT, name="forget_weather"), FINISH)
    assert findings([LIST, call, told("Sunny", name="forget_weather")]) == []


def test_a_call_of_a_tool_that_no_server_has_explains_no_question(findings: Findings) -> None:
    other = chat(*weather_call(city("Bruges"), name="forget_weather"), FINISH)
    found = findings.one([other, *witnesses(city("Bruges"))])
    assert found.code == "C023"


def two(*asked: ScriptedExchange, texts: tuple[str, str]) -> list[ScriptedExchange]:
    repeated = (("call_fake0", "get_weather", GENT), ("call_fake1", "get_weather", ROME))
    results = [result(f"call_fake{at}", text) for at, text in enumerate(texts)]
    return [LIST, TWO_CALLS, *asked, next_turn(assistant(*repeated), *results)]


def test_of_two_calls_the_other_one_is_certain(findings: Findings) -> None:
    asked = (served(ROME, "Rome: 30 C"), served(city("Paris"), "Paris: 20 C"))
    found = findings.one(two(*asked, texts=("Paris: 20 C", "Rome: 30 C")))
    assert (found.code, "Paris" in found.message) == ("C023", True)


def test_two_other_questions_are_nobodys(findings: Findings) -> None:
    asked = (served(city("Paris"), "Paris: 20 C"), served(city("Oslo"), "Oslo: 1 C"))
    assert findings([LIST, ONE_CALL, *asked, told("The tool is not available.")]) == []


@pytest.mark.parametrize(
    "history", ["Sunny, 25 degrees", '{"temperature": 25}', "Der Nutzer lehnt diesen Aufruf ab."]
)
def test_a_result_without_a_question_may_be_meant_so(findings: Findings, history: str) -> None:
    found = findings.one(not_asked(history))
    assert (found.code, found.blame, found.confidence) == (
        "C024",
        Blame.APP,
        Confidence.POSSIBLE,
    )
    assert found.severity is Severity.WARNING


@pytest.mark.parametrize("history", ["", " ", "Error: no connection", "Denied by policy"])
def test_a_result_that_says_nothing_ran_is_silent(findings: Findings, history: str) -> None:
    assert findings(not_asked(history)) == []


def test_a_call_without_a_result_is_silent(findings: Findings) -> None:
    asks = assistant(("call_fake0", "get_weather", GENT))
    assert findings([LIST, ONE_CALL, next_turn(asks, {"role": "user", "content": "Stop"})]) == []
    again = assistant(("call_fake1", "get_weather", ROME))
    both = next_turn(asks, result("call_fake0", "x"), result("call_fake0", "y"), again)
    assert findings([LIST, ONE_CALL, both]) == []


@pytest.mark.parametrize(
    ("exchanges", "confidence"),
    [
        (answered(ANSWER, ""), Confidence.LIKELY),
        (answered(ANSWER, "Sunny and warm"), Confidence.POSSIBLE),
        (answered("sunny and warm today", "zonnig en warm vandaag"), Confidence.POSSIBLE),
        (answered("Olá, Málaga", "OlÃ¡, MÃ¡laga"), Confidence.PROVEN),
        (
            two(
                served(GENT, ANSWER),
                served(ROME, "sunny"),
                texts=("sunny", "sunny"),
            ),
            Confidence.PROVEN,
        ),
    ],
)
def test_a_changed_result_is_the_apps(
    findings: Findings, exchanges: Sequence[ScriptedExchange], confidence: Confidence
) -> None:
    found = findings.one(exchanges)
    assert (found.code, found.blame, found.confidence) == ("C025", Blame.APP, confidence)
    assert "the tool server answered call 0" in found.message


@pytest.mark.parametrize(
    ("text", "history"),
    [
        ("line\none", '[{"type":"text","text":"line\\none"}]'),
        ("Málaga", "M\\u00e1laga"),
        ("a long text of a tool", "a long text"),
        ("one two three", "three, two, and one, in other words"),
        ("x" * 300, "nothing of it"),
    ],
)
def test_a_result_that_is_made_of_the_answer_is_silent(
    findings: Findings, text: str, history: str
) -> None:
    assert findings(answered(text, history)) == []


def test_an_old_result_may_be_left_out(findings: Findings) -> None:
    asks = assistant(("call_fake0", "get_weather", GENT))
    later = next_turn(
        asks,
        result("call_fake0", "-"),
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": "?"},
    )
    assert findings([LIST, ONE_CALL, served(GENT, ANSWER), later]) == []


def test_a_server_that_ended_is_at_fault_and_nobody_else(findings: Findings) -> None:
    params: dict[str, object] = {"name": "get_weather", "arguments": {"city": "Gent"}}
    ended = message("tools/call", params, None)
    found = findings.one([LIST, ONE_CALL, ended, told("Connection closed")])
    assert (found.code, found.blame, found.severity) == (
        "C026",
        Blame.TOOL_SERVER,
        Severity.WARNING,
    )
    assert found.confidence is Confidence.LIKELY
    assert "ended without an answer" in found.message
    left = replace(ended, reason=EndReason.CLIENT_CLOSED)
    assert findings([LIST, ONE_CALL, left, told("Cancelled")]) == []


def test_an_error_of_the_tool_is_a_remark(findings: Findings) -> None:
    found = findings.one(answered("no such city", "Error: no such city", failed=True))
    assert (found.code, found.blame, found.severity) == ("C026", None, Severity.INFO)
    assert "answered with an error (no such city)" in found.message


def test_a_late_answer_is_the_servers(findings: Findings) -> None:
    slow = replace(served(GENT, ANSWER), interval_s=5.0)
    later = replace(told("timed out"), at_s=6.0)
    found = findings.one([LIST, ONE_CALL, slow, later])
    assert (found.code, found.blame, found.severity) == ("C026", None, Severity.INFO)
    assert "after the app went on without it" in found.message


def test_a_tool_is_known_where_its_server_was_asked_for_it(findings: Findings) -> None:
    exchanges = [served(ROME, "Rome: 30 C"), ONE_CALL, told("Sunny, 25 degrees")]
    assert findings.one(exchanges).code == "C024"
    assert findings([listing(), ONE_CALL, told("Sunny, 25 degrees")]) == []
