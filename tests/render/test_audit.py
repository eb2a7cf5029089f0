import json

from deltatape.redact.audit import Kind, Problem, Report
from deltatape.render.as_json import audits_json
from deltatape.render.audit import Audit, audit_lines
from deltatape.render.lines import plain

SECRET = Problem(
    kind=Kind.SECRET, line=6, exchange=2, message="stderr holds an API key", span=(3, 22)
)
DAMAGE = Problem(kind=Kind.DAMAGE, line=9, exchange=0, message="no JSON")
CLEAN = Audit(path="a.tape", report=Report(problems=(), facts=("no `stop`",)))
BAD = Audit(path="b.tape", report=Report(problems=(SECRET, DAMAGE), facts=()))
LOST = Audit(path="c.tape", report=None, error="c.tape: empty")


def test_each_tape_is_told_with_its_problems_and_facts() -> None:
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
