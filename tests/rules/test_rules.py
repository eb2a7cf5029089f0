import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest

import deltatape.rules
from deltatape.rules import FAMILIES, RULES, Rule, guard

FOLDER = Path(deltatape.rules.__file__).parent
SECTIONS = ("What it does", "Why is this bad", "Example", "Fix", "References")
INNOCENT = "Innocent explanations"
"""Of rules that accuse where somebody innocent may look so; before the example."""

NAMES = {
    "W001": "unterminated-event",
    "W002": "invalid-utf8",
    "W003": "byte-order-mark",
    "W004": "event-not-json",
    "W005": "not-a-stream",
    "W006": "stream-cut",
    "W007": "buffered-burst",
    "W008": "missing-event-line",
    "W009": "bad-content-coding",
    "W010": "corrupt-message",
    "S001": "no-terminal-event",
    "S002": "finish-reason-mismatch",
    "S003": "finish-without-calls",
    "S004": "repeated-finish",
    "S005": "error-event",
    "S006": "unexpected-event",
    "S007": "sequence-gap",
    "S008": "empty-final-snapshot",
    "S009": "cut-by-limit",
    "S010": "call-after-finish",
    "S011": "other-model",
    "S012": "impossible-usage",
    "S013": "broken-structured-output",
    "S014": "stray-tokens-in-content",
    "T001": "empty-arguments",
    "T002": "malformed-arguments",
    "T003": "truncated-arguments",
    "T004": "missing-name",
    "T005": "missing-id",
    "T006": "arguments-not-an-object",
    "T007": "unknown-tool",
    "T008": "arguments-violate-schema",
    "T009": "repeated-name",
    "T010": "unstable-id",
    "T011": "missing-index",
    "T012": "reused-index",
    "T013": "index-not-zero-based",
    "T014": "repeated-arguments",
    "T015": "sources-disagree",
    "T016": "data-after-arguments",
    "T017": "empty-object-prefix",
    "T018": "tool-call-in-text",
    "T019": "unclosed-text-tool-call",
    "T020": "duplicate-call",
    "T021": "split-or-late-name",
    "T022": "double-escaped-arguments",
    "T023": "arguments-in-text",
    "T024": "call-against-choice",
    "T025": "choice-not-obeyed",
    "T026": "id-reused",
    "T027": "repeated-delta",
    "A001": "event-without-name",
    "A002": "event-arguments-not-object",
    "A003": "call-without-result",
    "A004": "missing-or-early-done",
    "A005": "event-after-done",
    "A006": "text-differs-from-done",
    "D001": "stall",
    "D002": "silent-answer",
    "D003": "unanswered-tool-call",
    "D004": "silence-after-tool-result",
    "D005": "slow-client",
    "C001": "call-lost-by-app",
    "C002": "arguments-changed-by-app",
    "C003": "identity-changed-by-app",
    "C004": "orphan-tool-result",
    "C005": "missing-tool-result",
    "C006": "tool-loop",
    "C007": "tool-call-on-small-talk",
    "C008": "retry-storm",
    "C009": "app-error-in-history",
    "C010": "forced-tool-choice-loop",
    "C011": "tools-removed-from-history",
    "C012": "text-changed-by-app",
    "C013": "reasoning-lost-by-app",
    "C014": "foreign-message",
    "C015": "results-swapped",
    "C016": "broken-call-executed",
    "C017": "result-not-serialised",
    "C018": "request-repeated",
    "C019": "user-message-repeated",
    "C020": "answers-not-kept",
    "C021": "system-prompt-lost",
    "C022": "called-tool-withdrawn",
    "X001": "internal-error",
    "X002": "recorder-loss",
}
"""The public contract: codes and names are never changed and never used again."""


def test_codes_and_names_are_the_public_ones_in_the_order_of_reports() -> None:
    assert [(rule.code, rule.name) for rule in RULES] == list(NAMES.items())


def test_every_module_with_rules_is_loaded_and_no_code_is_used_twice() -> None:
    said = [
        (module, code)
        for module in (each.name for each in pkgutil.iter_modules([str(FOLDER)]))
        for code in re.findall(
            r'(?:\.|_)rule\(\s*"([A-Z]\d{3})"', (FOLDER / f"{module}.py").read_text()
        )
    ]
    families = {each.__name__.rpartition(".")[2] for each in (*FAMILIES, guard)}
    assert {module for module, _ in said} == families
    assert sorted(code for _, code in said) == sorted(NAMES)


def test_every_rule_has_its_page_and_every_page_its_rule() -> None:
    pages = {path.stem: path.read_text().partition("\n")[0] for path in FOLDER.glob("docs/*")}
    assert pages == {rule.code: f"# {rule.code} {rule.name}" for rule in RULES}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_every_page_has_the_sections_in_order_and_a_link(rule: Rule[Any]) -> None:
    text = (FOLDER / "docs" / f"{rule.code}.md").read_text()
    headings = tuple(re.findall(r"^## (.+)$", text, re.MULTILINE))
    assert tuple(heading for heading in headings if heading != INNOCENT) == SECTIONS
    assert INNOCENT not in headings or headings.index(INNOCENT) == SECTIONS.index("Example")
    assert INNOCENT in headings or rule.code[0] not in "AC"
    assert "https://" in text.partition("## References")[2]
    assert text.count("```") == 2
