import subprocess
import sys
from pathlib import Path

import pytest

from deltatape.rules import RULES
from deltatape.rules.documentation import find, page, rule_page

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("name", ["T003", " t003 ", "truncated-arguments"])
def test_a_rule_is_found_by_code_and_by_name(name: str) -> None:
    rule = find(name)
    assert rule
    assert rule.code == "T003"


def test_an_explanation_is_markdown_without_the_indent_of_the_source() -> None:
    text = rule_page("T003")
    assert text
    assert text.startswith("# T003 truncated-arguments\n\nThe arguments of a call end too early.\n")
    assert "\n## Why is this bad\n" in text


def test_what_is_not_known_has_no_explanation() -> None:
    assert rule_page("Z999") is None


def test_the_page_links_every_rule_to_its_own_page() -> None:
    text = page()
    for rule in RULES:
        target = f"../proxy/deltatape/rules/docs/{rule.code}.md"
        assert f"\n| [{rule.code}]({target}) | {rule.name} | {rule.severity} | " in text
        assert (ROOT / "docs" / target).is_file()
    assert "| The arguments of a call end too early. |" in text


def test_the_committed_page_is_what_the_rules_say() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "findings-docs"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
