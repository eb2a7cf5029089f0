from deltatape.model.torture import Verdict
from deltatape.render.torture_junit import torture_junit
from helpers.reports import valid_junit
from helpers.tortured import cell, failed, result


def test_harmless_and_hostile_variations_are_a_suite_each() -> None:
    found = result(cell(), failed("crlf"), cell("cut-in-text", verdict=Verdict.TOLD))
    harmless, hostile = valid_junit(torture_junit(found))
    assert (harmless.get("name"), hostile.get("name")) == ("harmless", "hostile")
    assert [case.get("name") for case in harmless] == ["every-byte #1", "crlf #1"]
    assert harmless.get("failures") == "1"
    assert [case.get("time") for case in hostile] == ["0.250"]


def test_a_failure_tells_why_and_how_to_see_it_again() -> None:
    (suite,) = valid_junit(torture_junit(result(failed())))
    failure = suite[0].find("failure")
    assert failure is not None
    assert (failure.get("type"), failure.get("message")) == ("differs", "exit code 1")
    assert failure.text == "deltatape torture x.tape --only every-byte -- app\nTraceback\nboom\n"


def test_a_variation_without_a_place_is_skipped() -> None:
    none = cell(verdict=Verdict.NO_PLACE)
    (suite,) = valid_junit(torture_junit(result(none, cell("crlf"))))
    assert suite.get("skipped") == "1"
    assert suite[0].find("skipped") is not None


def test_where_nothing_was_tried_a_case_fails() -> None:
    tried, suite = valid_junit(torture_junit(result(cell(verdict=Verdict.NO_PLACE))))
    failure = tried[0].find("failure")
    assert failure is not None
    assert str(failure.get("message")).startswith("nothing was tried: none of the chosen ")
    assert suite.get("skipped") == "1"


def test_tapes_that_fail_as_they_are_are_the_only_case() -> None:
    (suite,) = valid_junit(torture_junit(result(problem="exit code 3", printed="boom")))
    failure = suite[0].find("failure")
    assert failure is not None
    assert (failure.get("message"), failure.text) == ("exit code 3", "boom\n")


def test_text_of_the_command_cannot_act_in_a_ci_log() -> None:
    text = torture_junit(result(failed(printed="##[error]\x1b[0m")))
    assert "##[" not in text
    assert "\x1b" not in text
    valid_junit(text)
