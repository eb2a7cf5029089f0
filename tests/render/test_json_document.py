import json
from collections.abc import Iterable
from dataclasses import replace

from deltatape.conversation import check_conversation
from deltatape.diagnose.check import check
from deltatape.model.finding import Finding
from deltatape.render.json_document import (
    FindingsDocument,
    document,
    hidden_object,
    inert_json,
    long_document,
)
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import USER, asks, assistant, call, digests, pasted, result, timed
from helpers.reports import report_on, unreadable, valid_findings, written
from helpers.secret_tapes import KEY, STARS


def findings_json(findings: Iterable[Finding]) -> str:
    writer = FindingsDocument()
    return writer.add(findings) + writer.end()


def test_a_document_has_a_version_and_ends_its_line() -> None:
    assert json.loads(document(a=1)) == {"version": 1, "a": 1}
    assert document(a=1).endswith("}\n")


def test_no_text_in_it_is_a_command_of_a_ci_system() -> None:
    evil = "##[error]\n::error::"
    text = inert_json({"data": evil})
    assert "##[" not in text
    assert not [line for line in text.splitlines() if line.lstrip().startswith("::")]
    assert json.loads(text) == {"data": evil}


def test_no_character_in_it_can_act_on_a_terminal_and_none_is_lost() -> None:
    evil = "\x1b\x7f\x9b\u202e\n"
    text = inert_json([evil])
    assert text.isascii()
    assert text.replace("\n", "").isprintable()
    assert json.loads(text) == [evil]


def test_secrets_in_it_are_overwritten() -> None:
    value = {"a": [KEY, 1, None, (KEY,)], "b": {"c": KEY}}
    hidden = {"a": [STARS, 1, None, [STARS]], "b": {"c": STARS}}
    assert json.loads(inert_json(value)) == hidden


def test_a_long_document_is_the_same_with_a_line_for_each_element() -> None:
    content = {"a": [{"b": [1, 2]}, {"c": KEY}], "d": [], "e": {"f": "##[error]"}, "g": None}
    text = long_document(**content)
    assert json.loads(text) == json.loads(document(**content))
    assert "##[" not in text
    assert text.splitlines()[:5] == [
        *("{", ' "version": 1,', ' "a": [', '  {"b": [1, 2]},', f'  {{"c": "{STARS}"}}')
    ]


ORPHAN = (asks(USER, result("c1")), [FINISH])
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
        "against",
        "excluded",
    ]
    assert (finding["code"], finding["severity"], finding["blame"]) == ("T006", "error", "upstream")
    assert finding["against"] is None
    assert finding["span"][0] == 0
    assert finding["t_ns"] == 100_000_000


def test_a_comparison_tells_both_places() -> None:
    bare = assistant(("c1", "get", "{}"))
    tape = digests((asks(USER), [*call(), FINISH]), (asks(USER, bare, result("c1")), []))
    lone = replace(tape[0], calls=(replace(tape[0].calls[0], span=None),))
    for first, span in ((tape[0], [0, 426]), (lone, None)):
        text = findings_json(check_conversation([first, tape[1]]))
        (finding,) = valid_findings(text)
        assert finding["against"] == {
            "tape": "x.tape",
            "exchange": 1,
            "line": 104,
            "span": span,
            "asked": [223, 227],
            "evidence": '{"a":1}',
        }
    later = replace(digests(ORPHAN)[0], t_ns=tape[1].t_ns)
    (orphan,) = valid_findings(findings_json(check_conversation([tape[0], later])))
    against = orphan["against"]
    assert isinstance(against, dict)
    assert against["asked"] is None


def test_a_document_of_several_tapes_is_valid_and_the_same_as_at_once() -> None:
    bad = report_on(pasted(BAD, FINISH))
    good = report_on(pasted(*call(), FINISH))
    text = written(FindingsDocument(), [good, bad, unreadable(), bad])
    assert text == findings_json([bad.reported[0].finding] * 2)
    assert [each["code"] for each in valid_findings(text)] == ["T006", "T006"]
    assert written(FindingsDocument(), [good, good]) == findings_json([])
    assert written(FindingsDocument(), [unreadable()]) == ""


def test_a_finding_without_place_has_nulls() -> None:
    finding = replace(check(pasted(BAD, FINISH))[0], span=None, event=None, blame=None)
    (found,) = json.loads(findings_json([finding]))["findings"]
    assert (found["span"], found["event"], found["t_ns"], found["blame"]) == (None,) * 4


def test_an_object_is_hidden_like_a_document() -> None:
    secret = "sk-proj-" + "a1B2" * 12
    shown = hidden_object({"a": secret, "b": [secret, 1], "c": None})
    assert "a1B2" not in str(shown)
    assert (shown["c"], len(str(shown["a"]))) == (None, len(secret))
