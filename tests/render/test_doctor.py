"""The report of doctor as text and as JSON."""

import json

from deltatape.render.doctor import (
    DoctorRemark,
    RemarkLevel,
    Section,
    doctor_json,
    doctor_lines,
    problems,
)
from deltatape.render.lines import plain

PROBLEM = DoctorRemark(
    level=RemarkLevel.PROBLEM,
    text="src/llm.py:6:65 goes to openrouter.ai, and no variable redirects it: a long line",
    shown='client = OpenAI(api_key="***", base_url="https://openrouter.ai/api/v1") # and much more',
    instead='base_url=os.environ.get("OPENROUTER_API_BASE", "https://openrouter.ai/api/v1"), on',
    fix="import os; then `deltatape record -- CMD` redirects it, and then words on another line",
    data={"path": "src/llm.py", "line": 6},
)
SECTIONS = (
    Section(
        title="machine", remarks=(DoctorRemark(level=RemarkLevel.OK, text="port 8377 is free"),)
    ),
    Section(title="sdks", remarks=()),
    Section(
        title="code", remarks=(PROBLEM, DoctorRemark(level=RemarkLevel.NOTE, text="a\x1b[31mb"))
    ),
)


def test_a_report_fits_the_terminal_but_code_to_copy_stays_in_one_piece() -> None:
    assert plain(doctor_lines(SECTIONS, 80)) == (
        "MACHINE\n"
        "  ok       port 8377 is free\n"
        "\n"
        "CODE\n"
        "  PROBLEM  src/llm.py:6:65 goes to openrouter.ai, and no variable redirects it:\n"
        "           a long line\n"
        '           client = OpenAI(api_key="***", base_url="https://openrouter.ai/api...\n'
        '           write base_url=os.environ.get("OPENROUTER_API_BASE",'
        ' "https://openrouter.ai/api/v1"), on\n'
        "           -> import os; then `deltatape record -- CMD` redirects it, and then\n"
        "              words on another line\n"
        "  note     a\\x1b[31mb\n"
        "\n"
        "1 problem, 1 note\n"
    )


def test_it_is_neither_narrower_nor_wider_than_is_read_well() -> None:
    assert plain(doctor_lines(SECTIONS, 10)) == plain(doctor_lines(SECTIONS, 60))
    assert plain(doctor_lines(SECTIONS, 500)) == plain(doctor_lines(SECTIONS, 100))


def test_without_a_problem_it_says_so() -> None:
    assert plain(doctor_lines(SECTIONS[:1])).endswith("\n\nno problems, 0 notes\n")
    assert problems(SECTIONS[:1]) == 0
    assert problems(SECTIONS) == 1


def test_the_json_form_holds_the_same_and_what_is_known_besides() -> None:
    text = doctor_json(SECTIONS)
    told = json.loads(text)
    assert text.isascii()
    assert (told["version"], told["problems"]) == (1, 1)
    assert told["checks"][0] == {
        "section": "machine",
        "level": "ok",
        "text": "port 8377 is free",
        "code": "",
        "instead": "",
        "fix": "",
    }
    assert told["checks"][1] == {
        "section": "code",
        "level": "problem",
        "text": PROBLEM.text,
        "code": PROBLEM.shown,
        "instead": PROBLEM.instead,
        "fix": PROBLEM.fix,
        "path": "src/llm.py",
        "line": 6,
    }
