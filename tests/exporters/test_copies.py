"""What is copied from a page is run by what it is for: a shell, pytest."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.diagnose.rebuild import analyse
from deltatape.exporters.copies import COPIES, copied
from deltatape.exporters.curl import shell_word
from helpers.hostile import FILE_NAME, PAYLOAD
from helpers.taped import taped

NAMES = (
    "plain.tape",
    'it\'s $HOME `id` \\ "x".tape',
    "$(touch owned).tape",
    "-o.tape",
    "100% %s \\045 \\n.tape",
    "caf\u00e9 \u202e.tape",
    "\x1b[201~\rtouch owned\r.tape",
    FILE_NAME,
    "\udce9.tape",
)


@pytest.mark.parametrize("text", [*NAMES, PAYLOAD.replace("\0", ""), "a\nb", "\t"])
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_shell_reads_a_word_as_it_was(text: str, shell: str) -> None:
    text += "."
    script = f"printf %s {shell_word(text)}"
    ran = subprocess.run([shell, "-c", script], capture_output=True, check=True)
    assert ran.stdout == text.encode("utf-8", "surrogateescape")


@pytest.mark.parametrize("name", NAMES)
def test_no_copy_acts_on_the_terminal_that_it_is_pasted_into(name: str) -> None:
    exchange = taped(target=f"/{name}".encode("utf-8", "replace"), method=f"X{name}")
    request = replace(exchange.request, headers=((b"X-A", PAYLOAD.encode()),))
    analysis = analyse(replace(exchange, request=request))
    for kind in COPIES:
        text = copied(kind, analysis, f"/t/{name}", "1")
        assert all(each.isprintable() or each == "\n" for each in text), kind
        assert text.endswith("\n")


def test_the_command_explains_the_exchange() -> None:
    analysis = analyse(taped(number=7))
    assert copied("command", analysis, "/t/x.tape", "1") == "deltatape why '/t/x.tape#7'\n"
    assert copied("command", analysis, "-x", "1") == "deltatape why './-x#7'\n"


@pytest.mark.parametrize("name", NAMES)
def test_the_test_names_the_exchange_and_nothing_of_it_becomes_code(
    name: str, tmp_path: Path
) -> None:
    text = copied("pytest", analyse(taped()), f"/t/{name}", "1")
    code = compile(text, "test_copied.py", "exec")
    assert f"/t/{name}#1" in code.co_consts
    assert 'tape.url("openai")' in text
    assert "tape.url()" in copied("pytest", analyse(taped(upstream="http://[x")), "x", "1")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_test_plays_the_exchange(tmp_path: Path) -> None:
    incidents = Path(__file__).parent.parent.parent / "recordings" / "incidents"
    tape = incidents / "itinerary-fixed.tape"
    text = copied("pytest", analyse(taped()), str(tape), "1")
    assert "pytest.fail" in text
    (tmp_path / "test_copied.py").write_text(text)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_copied.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "call the app here, so that it asks http://127.0.0.1:" in ran.stdout
