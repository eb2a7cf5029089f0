"""Every rule has a recording that fires it, one that does not, and innocent ones.

`recordings/rules/CODE/fires.tape`, `silent.tape` and `silent-*.tape`.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from deltatape.conversation import check_conversation
from deltatape.diagnose.check import check_analysis, subjects_of
from deltatape.diagnose.digest import digest_analysis
from deltatape.diagnose.rebuild import analyse
from deltatape.dialects import DIALECTS
from deltatape.model.finding import Blame, Confidence, Finding
from deltatape.rules import EXCHANGE_RULES, RULES
from deltatape.store.reader import open_tape
from helpers.contexts import context_of
from helpers.rule_recordings import RECORDINGS

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "recordings" / "rules"
CODES = [rule.code for rule in RULES if rule.code != "X001"]
"""X001 reports a rule that failed, which no tape brings about."""
ALSO = {
    "A004": {"A003"},
    "C008": {"S005"},
    "C016": {"S009", "T003"},
    "D004": {"W006"},
    "W006": {"S001", "T003"},
}
"""What else the recordings that fire a rule yield."""


def found(code: str, name: str) -> Sequence[Finding]:
    """All findings on a recording, those about its conversations included."""
    analyses = [analyse(exchange) for exchange in open_tape(FOLDER / code / f"{name}.tape")]
    digests = [digest_analysis(analysis) for analysis in analyses]
    of_each = [finding for analysis in analyses for finding in check_analysis(analysis)]
    return [*of_each, *check_conversation(digests)]


def test_every_rule_has_its_recordings_and_no_other_has() -> None:
    assert set(CODES) ^ set(RECORDINGS) == set(), "the tables are in tests/helpers/rule_recordings"
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(CODES)


@pytest.mark.parametrize("code", CODES)
def test_a_recording_that_fires_yields_its_rule_and_what_is_told_of_it(code: str) -> None:
    expected = {code} | ALSO.get(code, set())
    assert {finding.code for finding in found(code, "fires")} == expected, "see ALSO"


@pytest.mark.parametrize("code", CODES)
def test_a_recording_that_is_silent_yields_nothing(code: str) -> None:
    assert [finding.message for finding in found(code, "silent")] == []


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (code, name)
        for code, recordings in RECORDINGS.items()
        for name in recordings
        if name.startswith("silent-")
    ],
)
def test_an_innocent_recording_blames_nobody_of_its_rule_and_no_app_of_any(
    code: str, name: str
) -> None:
    sure = [
        each
        for each in found(code, name)
        if each.blame is not None and each.confidence is not Confidence.POSSIBLE
    ]
    assert [each.message for each in sure if each.code == code or each.blame is Blame.APP] == []


@pytest.mark.parametrize("code", CODES)
def test_a_finding_has_all_that_a_report_needs(code: str) -> None:
    for finding in found(code, "fires"):
        assert finding.message
        assert finding.hint
        assert finding.tape.endswith("fires.tape")
        assert finding.line is not None
        assert finding.t_ns is not None


def test_the_recordings_are_what_their_program_makes() -> None:
    program = [sys.executable, str(ROOT / "scripts" / "tape-rules"), "--check"]
    done = subprocess.run(program, check=False, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("", 0)


def test_every_dialect_of_http_is_among_them() -> None:
    # What the rules find on a WebSocket, tests/diagnose says.
    on_sockets = {path.stem for path in (ROOT / "recordings" / "dialects" / "websocket").iterdir()}
    spoken = {
        analyse(exchange).reply.dialect
        for path in FOLDER.rglob("*.tape")
        for exchange in open_tape(path)
    }
    assert on_sockets
    missing = {dialect.name for dialect in DIALECTS} - on_sockets - spoken
    assert not missing, "in tests/helpers/rule_recordings no rule has a sample() of these"


def test_a_rule_finds_nothing_where_what_it_is_about_is_missing() -> None:
    asked = 0
    for tape in sorted(FOLDER.rglob("*.tape")):
        for context in map(context_of, open_tape(tape)):
            missing = [
                rule
                for rule in EXCHANGE_RULES
                if rule.about is not None and rule.about not in subjects_of(context)
            ]
            asked += len(missing)
            claims = {rule.code: [*rule.check(context)] for rule in missing}
            assert not any(claims.values()), (tape, claims)
    assert asked
