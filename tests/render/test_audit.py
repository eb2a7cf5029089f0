import json
from dataclasses import replace

from deltatape.compare.recheck import (
    Aspect,
    Recheck,
    RecheckedExchange,
    ResponseDrift,
    compare_today,
)
from deltatape.diagnose.rebuild import analyse
from deltatape.model.rule_settings import DEFAULTS
from deltatape.redact.audit import AuditReport, ProblemKind, TapeProblem
from deltatape.render.audit import Audit, audit_lines, audits_json
from deltatape.render.json_document import document
from deltatape.render.lines import plain
from deltatape.render.recheck import today_lines, today_object
from helpers.chat import sse
from helpers.exchanges import FINISH_TEXT, TEXT
from helpers.taped import taped

SECRET = TapeProblem(
    kind=ProblemKind.SECRET, line=6, exchange=2, message="stderr holds an API key", span=(3, 22)
)
DAMAGE = TapeProblem(kind=ProblemKind.DAMAGE, line=9, exchange=0, message="no JSON")
CLEAN = Audit(path="a.tape", report=AuditReport(problems=(), facts=("no `stop`",)))
BAD = Audit(path="b.tape", report=AuditReport(problems=(SECRET, DAMAGE), facts=()))
LOST = Audit(path="c.tape", report=None, error="c.tape: empty")


def test_each_tape_is_shown_with_its_problems_and_facts() -> None:
    assert plain(audit_lines([CLEAN, BAD, LOST])) == (
        "a.tape: clean\n"
        "    note: no `stop`\n"
        "b.tape: 2 problems\n"
        "    line 6, #2, bytes 3 to 22: stderr holds an API key\n"
        "    line 9: no JSON\n"
        "c.tape: empty\n"
        "secrets are overwritten by: deltatape redact b.tape\n"
    )


def test_nothing_is_advised_where_no_secret_is_left() -> None:
    assert plain(audit_lines([LOST])) == "c.tape: empty\n"


def test_the_json_form_holds_the_same() -> None:
    told = json.loads(audits_json([CLEAN, BAD, LOST]))
    assert told["version"] == 1
    clean, bad, lost = told["tapes"]
    assert clean == {"path": "a.tape", "error": None, "problems": [], "facts": ["no `stop`"]}
    assert bad["problems"] == [
        {
            "kind": "secret",
            "line": 6,
            "exchange": 2,
            "message": "stderr holds an API key",
            "span": [3, 22],
        },
        {"kind": "damage", "line": 9, "exchange": 0, "message": "no JSON", "span": None},
    ]
    assert lost == {"path": "c.tape", "error": "c.tape: empty", "problems": [], "facts": []}


URL = "http://127.0.0.1:9"
EXCHANGE = taped([(10, sse(TEXT, FINISH_TEXT))], end_ms=2000)
SAME = compare_today(analyse(EXCHANGE), analyse(EXCHANGE), DEFAULTS)
UNTIMED = replace(EXCHANGE, end=None)


def drifted(*drifts: ResponseDrift) -> RecheckedExchange:
    return replace(SAME, drifts=drifts, notes=("model: a, today b",))


def drift(aspect: Aspect, what: str = "", recorded: str = "", today: str = "") -> ResponseDrift:
    return ResponseDrift(aspect=aspect, what=what, recorded=recorded, today=today)


ASKED = (
    Recheck(recorded=EXCHANGE, today=SAME, left_out=("Cookie",)),
    Recheck(
        recorded=replace(UNTIMED, number=2),
        today=drifted(
            drift(Aspect.STATUS, recorded="200", today="429"),
            drift(Aspect.ANSWER, recorded="calls"),
            drift(Aspect.EVENT, "ping", today="present"),
            drift(Aspect.EVENT, "done", recorded="present"),
            drift(Aspect.FIELD, "chunk: cost", today="number"),
            drift(Aspect.FIELD, "chunk: id", recorded="number", today="string"),
            drift(Aspect.SPACING, "line-ends", "LF", "CR LF"),
            drift(Aspect.FINDING, "T003 truncated-arguments", recorded="call 0 (get): cut"),
        ),
    ),
    Recheck(recorded=replace(EXCHANGE, number=3), today=None, problem="not asked: set A_KEY"),
    Recheck(recorded=replace(EXCHANGE, number=4), today=None, passed_over="it went to a"),
)


def test_each_exchange_is_shown_with_what_differs() -> None:
    assert plain(today_lines(ASKED, URL)) == (
        "  today at http://127.0.0.1:9: 2 answers, 1 as on the tape\n"
        "    #1 POST /v1/chat/completions: as on the tape\n"
        "        note: the same answer, event by event\n"
        "        note: began after 10 ms, ended after 2.0 s; today began after 10 ms, ended after"
        " 2.0 s\n"
        "        note: not sent, since it is masked on the tape: Cookie\n"
        "    #2 POST /v1/chat/completions: 8 differences\n"
        "        status: 200, today 429\n"
        "        the answer brings: calls, today nothing\n"
        "        event ping: new today\n"
        "        event done: gone today\n"
        "        field chunk: cost: new today (number)\n"
        "        field chunk: id: number, today string\n"
        "        spelling line-ends: LF, today CR LF\n"
        "        finding T003 truncated-arguments: gone today (call 0 (get): cut)\n"
        "        note: model: a, today b\n"
        "    #3 POST /v1/chat/completions: not asked: set A_KEY\n"
        "    #4 POST /v1/chat/completions: passed over: it went to a\n"
    )


def test_lines_fit_into_the_page_and_are_not_without_end() -> None:
    many = drifted(*(drift(Aspect.FIELD, f"chunk: x{at}", today="null") for at in range(99)))
    text = plain(today_lines((Recheck(recorded=EXCHANGE, today=many),), URL, 60))
    assert "        and 69 more; all of them: --format json\n" in text
    assert "x29" in text
    assert "x30" not in text
    assert max(map(len, text.splitlines())) <= 60


def test_the_json_form_of_today_holds_the_same() -> None:
    told = json.loads(document(against=today_object(ASKED, URL)))["against"]
    assert told["url"] == URL
    same, other, failed, passed = told["exchanges"]
    assert same == {
        "exchange": 1,
        "id": EXCHANGE.id,
        "same": True,
        "equal": True,
        "passed_over": None,
        "problem": None,
        "left_out": ["Cookie"],
        "differences": [],
        "notes": ["the same answer, event by event"],
    }
    assert other["same"] is False
    assert other["differences"][0] == {
        "aspect": "status",
        "what": None,
        "recorded": "200",
        "today": "429",
    }
    assert (failed["same"], failed["equal"], failed["problem"]) == (
        *(None, None, "not asked: set A_KEY"),
    )
    assert passed["passed_over"] == "it went to a"


def test_what_a_provider_gives_today_stands_below_its_tape() -> None:
    asked = replace(CLEAN, asked=ASKED, url=URL)
    assert plain(today_lines(ASKED, URL)) in plain(audit_lines([asked]))
    (told,) = json.loads(audits_json([asked]))["tapes"]
    assert told["against"] == json.loads(document(against=today_object(ASKED, URL)))["against"]
