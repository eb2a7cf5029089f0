from deltatape.model.finding import Severity
from deltatape.render.junit import TestReport
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import FINISH_TEXT, TEXT, call, pasted
from helpers.reports import FAILING, report_on, unreadable, valid_junit, written

BAD = calls(entry(0, "c1", name="get", arguments="[1]"))
MILD = calls(entry(0, "c1", name="get", arguments=""))


def names(text: str) -> list[str]:
    return [str(case.get("name")) for suite in valid_junit(text) for case in suite]


def test_a_code_that_fails_is_a_failed_case_and_a_clean_exchange_a_passed_one() -> None:
    text = written(TestReport(FAILING), [report_on(pasted(BAD, FINISH)), report_on(*[GOOD])])
    (first, second) = valid_junit(text)
    assert names(text) == ["#1 T006 arguments-not-an-object", "#1"]
    assert first.attrib == {
        "name": "x.tape",
        "tests": "1",
        "failures": "1",
        "errors": "0",
        "skipped": "0",
    }
    failure = first[0].find("failure")
    assert failure is not None
    assert failure.get("type") == "T006"
    assert failure.get("message") == (
        "the arguments of call 0 (get) are JSON, but not an object (upstream, likely)"
    )
    assert "    fix: " in str(failure.text)
    assert not list(second[0])


GOOD = pasted(*call(), FINISH)


def test_findings_of_one_code_are_one_case_that_tells_all() -> None:
    twice = calls(
        entry(0, "c1", name="get", arguments="[1]"), entry(1, "c2", name="put", arguments="[2]")
    )
    text = written(TestReport(FAILING), [report_on(pasted(twice, FINISH))])
    assert names(text) == ["#1 T006 arguments-not-an-object"]
    failure = valid_junit(text)[0][0].find("failure")
    assert failure is not None
    assert "(and 1 more)" in str(failure.get("message"))
    assert "(put)" in str(failure.text)


def test_what_does_not_fail_is_the_output_of_a_passed_case() -> None:
    text = written(TestReport(FAILING), [report_on(pasted(MILD, FINISH))])
    assert names(text) == ["#1"]
    told = valid_junit(text)[0][0].find("system-out")
    assert told is not None
    assert str(told.text).startswith("warning T001 empty-arguments")
    strict = TestReport(frozenset({Severity.ERROR, Severity.WARNING}))
    assert names(written(strict, [report_on(pasted(MILD, FINISH))])) == ["#1 T001 empty-arguments"]


def test_a_tape_that_cannot_be_read_is_an_error_and_no_tapes_are_a_valid_report() -> None:
    text = written(TestReport(FAILING), [unreadable(), report_on(pasted(TEXT, FINISH_TEXT))])
    error = valid_junit(text)[0][0].find("error")
    assert error is not None
    assert error.get("message") == "bad.tape:5: no JSON"
    assert not list(valid_junit(written(TestReport(FAILING), [])))
