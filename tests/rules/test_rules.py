import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest

import deltatape.rules
from deltatape.model.finding import Severity
from deltatape.rules import FAMILIES, RULES, Rule, rule
from deltatape.rules.rule import FindingPlace, RuleKind

FOLDER = Path(deltatape.rules.__file__).parent
SECTIONS = ("What it does", "Why is this bad", "Example", "Fix", "References")
INNOCENT = "Innocent explanations"
"""Of rules that accuse where somebody innocent may look so; before the example."""
CODE = re.compile(r'(?:\.|_)rule\(\s*"([A-Z]\d{3})"')


def test_the_order_of_reports_is_by_group_and_number() -> None:
    codes = [rule.code for rule in RULES]
    assert "".join(dict.fromkeys(code[0] for code in codes)) == "WSTADCX"
    assert codes == sorted(codes, key=lambda code: ("WSTADCX".index(code[0]), code))


def test_every_module_with_rules_is_loaded_and_no_code_is_used_twice() -> None:
    codes = [
        (module.name, code)
        for module in pkgutil.iter_modules([str(FOLDER)])
        for code in CODE.findall((FOLDER / f"{module.name}.py").read_text())
    ]
    families = {each.__name__.rpartition(".")[2] for each in (*FAMILIES, rule)}
    assert {module for module, _ in codes} == families
    assert sorted(code for _, code in codes) == sorted(rule.code for rule in RULES)


def test_every_rule_has_its_page_and_every_page_its_rule() -> None:
    """The pages keep the public contract: codes and names are never changed nor used again."""
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


def test_two_rules_with_one_code_are_refused() -> None:
    kind = RuleKind[str](lambda _: FindingPlace("x.tape", 1))
    kind.rule("T001", "first-name", Severity.INFO)(lambda _: iter(()))
    with pytest.raises(ValueError, match="T001 of 'second-name' is that of 'first-name'"):
        kind.rule("T001", "second-name", Severity.INFO)


def test_a_code_without_a_group_is_refused() -> None:
    kind = RuleKind[str](lambda _: FindingPlace("x.tape", 1))
    with pytest.raises(ValueError, match="Z001 of 'a-name' begins with none of"):
        kind.rule("Z001", "a-name", Severity.INFO)
