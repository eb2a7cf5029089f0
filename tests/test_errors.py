"""What is raised on purpose is one line for the user."""

import pytest

from deltatape.errors import DeltatapeError, TapeFormatError, UsageError, did_you_mean


@pytest.mark.parametrize(("line", "text"), [(7, "x.tape:7: no record"), (0, "x.tape: no record")])
def test_a_damaged_tape_is_named_with_its_line(line: int, text: str) -> None:
    error = TapeFormatError("x.tape", line, "no record")
    assert str(error) == text
    assert (error.path, error.line, error.problem) == ("x.tape", line, "no record")


@pytest.mark.parametrize("error", [TapeFormatError("x", 0, "y"), UsageError("y")])
def test_every_error_of_ours_ends_with_2(error: DeltatapeError) -> None:
    assert isinstance(error, DeltatapeError)
    assert error.exit_code == 2


@pytest.mark.parametrize(("name", "hint"), [("chekc", " Did you mean 'check'?"), ("zzz", "")])
def test_the_nearest_name_is_suggested(name: str, hint: str) -> None:
    assert did_you_mean(name, ["check", "why"]) == hint
