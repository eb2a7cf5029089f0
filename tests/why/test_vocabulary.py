"""The words of verdicts: one table, which the page and every verdict keep to."""

from pathlib import Path

import pytest

from deltatape.model.explanation import PARTIES, VOCABULARY, Verdict, VerdictKind
from deltatape.model.finding import Blame, Confidence
from deltatape.store.reader import open_tape
from deltatape.why.explain import explain

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "verdicts.md").read_text()
TAPES = sorted((ROOT / "recordings" / "rules").glob("*/*.tape"))


def test_the_page_has_every_verdict_and_every_party() -> None:
    rows = [f"| {each.shown} | `{each.kind}` | {each.means} | {each.then} |" for each in VOCABULARY]
    parties = [f"| {blame} | {what} |" for blame, what in PARTIES.items()]
    lines = PAGE.splitlines()
    table = lines.index("| verdict | `verdict.kind` | what it means | what to do |")
    assert lines[table + 2 : table + 3 + len(rows)] == [*rows, ""]
    table = lines.index("| PARTY | |")
    assert lines[table + 2 : table + 3 + len(parties)] == [*parties, ""]


def test_every_kind_and_every_party_has_its_words() -> None:
    assert {each.kind for each in VOCABULARY} == set(VerdictKind)
    assert set(PARTIES) == set(Blame)
    shown = [each.shown for each in VOCABULARY]
    assert len(set(shown)) == len(shown)


@pytest.mark.parametrize("blame", list(Blame))
def test_a_party_is_named_with_how_sure_that_is(blame: Blame) -> None:
    for confidence in (Confidence.PROVEN, Confidence.LIKELY):
        verdict = Verdict(
            kind=VerdictKind.BLAMED, blame=blame, confidence=confidence, summary="", fix=""
        )
        assert verdict.shown == f"{blame}, {confidence}"


@pytest.mark.slow
def test_every_verdict_on_a_recording_keeps_to_the_vocabulary(subtests: pytest.Subtests) -> None:
    for path in TAPES:
        with subtests.test(f"{path.parent.name}/{path.stem}"):
            keeps_to_the_vocabulary(path)


def keeps_to_the_vocabulary(path: Path) -> None:
    explanation = explain(sorted(open_tape(path), key=lambda each: each.number))
    verdict = explanation.verdict
    assert verdict.shown
    blamed = verdict.kind is VerdictKind.BLAMED
    assert blamed == (verdict.blame is not None) == (verdict.confidence is not None)
    assert verdict.confidence is not Confidence.POSSIBLE
    assert all(each.confidence is Confidence.POSSIBLE for each in verdict.possible)
    if verdict.blame is not Blame.APP:
        assert "the mistake is in the app" not in verdict.summary
        assert explanation.suspects == ()
