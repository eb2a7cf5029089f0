import re

import pytest

from deltatape.shrink.failure import CommandResult, failure_of, named_error, pattern_of, readable

TRACE = """Traceback (most recent call last):
  File "app.py", line 14, in <module>
json.decoder.JSONDecodeError: Extra data: line 1 column 9 (char 8)
"""


def failed(output: str = "", code: int | None = 1, **more: object) -> CommandResult:
    return CommandResult(exit_code=code, output=output, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("output", "error"),
    [
        (TRACE, "json.decoder.JSONDecodeError: Extra data: line 1 column 9 (char 8)"),
        ("E   KeyError: 'tool'\n1 failed\n", "KeyError: 'tool'"),
        ("x\n  TypeError: a is not b\n    at f (x.mjs:1:2)\n", "TypeError: a is not b"),
        ("panic: runtime error: index out of range [3]\n", "panic: runtime error: index out"),
        ("java.lang.IllegalStateException: no\n", "java.lang.IllegalStateException: no"),
        ("all is well\n", ""),
        ("", ""),
    ],
)
def test_the_last_line_that_names_an_error_is_found(output: str, error: str) -> None:
    found = named_error(output)
    assert found.startswith(error)
    assert bool(found) == bool(error)


def test_the_same_error_with_other_numbers_and_texts_is_the_same_failure() -> None:
    failure = failure_of(failed(TRACE))
    assert failure is not None
    assert failure.description == f"exit code 1, {TRACE.splitlines()[-1]}"
    assert failure.literal == "json.decoder.JSONDecodeError: Extra data: line"
    assert failure.is_in(failed(TRACE.replace("column 9", "column 12")))
    assert not failure.is_in(failed(TRACE.replace("Extra data", "Expecting value")))
    assert not failure.is_in(failed(TRACE, code=2))
    assert not failure.is_in(failed("", code=1))


def test_addresses_and_quoted_texts_do_not_count() -> None:
    pattern = pattern_of("HTTPError: 'a' from http://127.0.0.1:8378/v1")
    assert pattern == r"HTTPError: .*? from http://.*?/v.*?"


def test_without_an_error_in_the_output_the_exit_code_decides() -> None:
    failure = failure_of(failed("bad luck"))
    assert failure is not None
    assert failure.description == "exit code 1"
    assert failure.literal == ""
    assert failure.is_in(failed("something else"))


def test_a_signal_and_an_end_that_does_not_come_are_failures() -> None:
    killed = failure_of(failed(code=None, signal="SIGSEGV"))
    late = failure_of(failed("KeyError: 1", code=None, signal="SIGKILL", timed_out=True))
    assert killed is not None
    assert late is not None
    assert killed.description == "ended by SIGSEGV"
    assert late.description == "still running at the deadline"
    assert not killed.is_in(late.ending)
    assert late.is_in(failed(code=None, signal="SIGKILL", timed_out=True))


def test_success_is_not_a_failure_unless_the_user_says_so() -> None:
    fine = failed("Answer: 7", code=0)
    assert failure_of(fine) is None
    assert failure_of(fine, "Answer: 8") is None
    wrong = failure_of(fine, "Answer: 7")
    assert wrong is not None
    assert wrong.is_in(failed("so: Answer: 7", code=0))
    assert not wrong.is_in(failed("Answer: 12", code=0))


def test_what_does_not_count_is_not_told() -> None:
    failure = failure_of(failed("x", code=None))
    assert failure is not None
    assert failure.description == ""


def test_outputs_become_one_text_with_lines_that_can_be_read() -> None:
    assert readable(b"a\xff\nb", b"c" * 5000) == f"a\ufffd\nb\n{'c' * 2000}"


@pytest.mark.parametrize(
    "line",
    [
        "KeyError: 'tool'",
        "AttributeError: 'NoneType' object has no attribute 'id'",
        "TypeError: Cannot read properties of undefined (reading 'content')",
        "NameError: name 'b' is not defined",
    ],
)
def test_the_names_that_an_error_is_about_count_unless_they_are_loosened(
    line: str,
) -> None:
    failure = failure_of(failed(line))
    assert failure is not None
    assert failure.is_in(failed(f"x\n{line}\n"))
    assert failure.literal == line
    quoted = re.search(r"'\w+'", line)
    assert quoted is not None
    changed = line.replace(quoted[0], "'other'")
    assert not failure.is_in(failed(changed))
    assert failure.loosened.is_in(failed(changed))
    assert failure.loosened.loosened == failure.loosened


def test_texts_that_are_no_names_do_not_count_and_neither_do_names_in_other_errors() -> None:
    for line in ("KeyError: 'a b'", "ValueError: 'a'"):
        failure = failure_of(failed(line))
        assert failure is not None
        assert failure.is_in(failed(re.sub("'.*'", "'c d'", line)))


def test_what_the_user_says_is_not_loosened_and_masked_credentials_do_not_count() -> None:
    said = failure_of(failed("KeyError: 'a'"), "KeyError: 'a'")
    assert said is not None
    assert said.loosened is said
    masked = failure_of(failed("AuthError: wrong key **********"))
    assert masked is not None
    assert masked.pattern == "AuthError: wrong key .*?"
