import pytest

from deltatape.render.ci_log import inert_line, inert_remark, inert_text
from deltatape.render.lines import BOLD, StyledText, line, plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::x", r"\x3a:error::x"),
        ("    ::stop-commands::x", r"    \x3a:stop-commands::x"),
        ("a ::error::x", "a ::error::x"),
        ("a ##[error]x", r"a #\x23[error]x"),
        ("##vso[task.setvariable]", r"#\x23vso[task.setvariable]"),
        ("##teamcity[x]", r"#\x23teamcity[x]"),
        ("## a heading [1]", "## a heading [1]"),
    ],
)
def test_commands_are_shown_and_not_said(text: str, shown: str) -> None:
    assert plain([inert_line(line(text))]) == f"{shown}\n"


def test_a_command_in_several_pieces_is_one() -> None:
    pieces = line("  ", StyledText(":", BOLD), ":error::")
    assert plain([inert_line(pieces)]) == "  \\x3a:error::\n"
    pieces = line("#", "#", StyledText("[group]"))
    assert plain([inert_line(pieces)]) == "#\\x23[group]\n"


def test_other_lines_keep_their_styles() -> None:
    pieces = line("a", StyledText("b", BOLD))
    assert inert_line(pieces) is pieces


def test_a_remark_says_no_command_either() -> None:
    assert inert_remark("note: ##[error].tape: damaged") == "note: #\\x23[error].tape: damaged"


def test_a_document_has_its_own_escape() -> None:
    assert inert_text('"##[error]"', r"#\u0023") == r'"#\u0023[error]"'
