import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import deltatape.rules
from deltatape.conversation import check_conversation
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.model.stream import Place
from deltatape.rules import (
    EXCHANGE_RULES,
    FAMILIES,
    READ_BACK_RULES,
    RULES,
    Claim,
    Rule,
    RuleContext,
    ask,
    rule,
)
from deltatape.rules.context import label
from deltatape.rules.documentation import find, page, rule_page
from deltatape.rules.rule import MAX_MESSAGE, FindingPlace, RuleKind
from helpers.chat import FINISH, calls, choice, entry
from helpers.contexts import context_of
from helpers.exchanges import (
    CALL_REPLY,
    TEXT,
    USER,
    asks,
    assistant,
    call,
    digests,
    pasted,
    result,
    timed,
)

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
    assert {module for module, _ in codes} == families, "see FAMILIES in rules/__init__.py"
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


def made(context: RuleContext, message: str = "m", place: Place | None = None) -> Finding:
    """What W004 makes of a claim."""
    (rule,) = (each for each in EXCHANGE_RULES if each.code == "W004")
    claim = Claim(message=message, hint="h", blame=None, confidence=Confidence.LIKELY, place=place)
    (finding,) = replace(rule, check=lambda _: [claim]).findings(context)
    return finding


def test_messages_are_escaped_and_limited() -> None:
    assert made(context_of(pasted(TEXT)), "a\x1bb").message == "a\\x1bb"
    assert len(made(context_of(pasted(TEXT)), "x" * 5000).message) == MAX_MESSAGE


def test_a_finding_without_place_has_no_line_span_or_time() -> None:
    finding = made(context_of(timed((0.1, TEXT))))
    assert (finding.line, finding.span, finding.t_ns, finding.event) == (None, None, None, None)
    assert finding.tape == "x.tape"


def test_times_of_what_was_not_taped_are_unknown() -> None:
    context = context_of(pasted(TEXT))
    assert made(context, place=context.stream.events[0].place).t_ns is None
    assert context.seen is Confidence.LIKELY
    assert context_of(timed((0.1, TEXT))).seen is Confidence.PROVEN


def test_success_is_a_status_of_the_class_two_hundred() -> None:
    assert context_of(pasted(TEXT)).successful
    assert not context_of(pasted(TEXT, status=404)).successful
    assert not context_of(timed(framing=None)).successful


def test_events_are_found_by_number() -> None:
    context = context_of(pasted(TEXT))
    assert context.event(0) is context.stream.events[0]
    assert context.event(None) is context.event(7) is context.event(-1) is None


def test_a_call_is_called_by_index_and_name() -> None:
    named = context_of(pasted(*call(), FINISH)).reply.tool_calls[0]
    nameless = context_of(pasted(calls(entry(0, "c1", arguments="{}")))).reply.tool_calls[0]
    assert (label(named), label(nameless)) == ("call 0 (get)", "call 0")


def test_a_finding_lies_at_the_request_that_repeats_the_reply() -> None:
    (finding,) = check_conversation(
        digests(
            (asks(USER), CALL_REPLY),
            (asks(USER, assistant(("c1", "get", "")), result("c1")), []),
        )
    )
    assert (finding.tape, finding.exchange, finding.line) == ("x.tape", 2, 200)
    assert finding.t_ns == 10_000_000_000
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.PROVEN)
    assert finding.message.startswith("call 0 (get, c1) of #1 ")


def test_every_rule_about_a_conversation_blames_nobody_for_a_reply_that_broke_off() -> None:
    broken = digests(
        (asks(USER), [*call(), choice({}, "length")]),
        (asks(USER, assistant(("c1x", "gett", "")), result("c1x")), []),
    )
    assert len(READ_BACK_RULES) == 8
    assert not check_conversation(broken)


def claim(message: str) -> Claim:
    return Claim(message=message, hint="", blame=None, confidence=Confidence.LIKELY)


def rule_of(code: str, check: Callable[[str], Iterable[Claim]]) -> Rule[str]:
    return Rule(
        code=code,
        name=code.lower(),
        severity=Severity.ERROR,
        check=check,
        where=lambda seen: FindingPlace(seen, 3, line=7, t_ns=1),
    )


def fail(seen: str) -> Iterable[Claim]:
    yield claim(f"first on {seen}")
    raise ValueError("odd \x1b[31m")


def test_what_came_before_the_error_is_kept_and_the_next_rule_is_asked() -> None:
    found = ask([rule_of("T001", fail), rule_of("T002", lambda _: [claim("last")])], "x.tape")
    assert [(each.code, each.message) for each in found] == [
        ("T001", "first on x.tape"),
        ("X001", "the rule T001 failed: ValueError: odd \\x1b[31m"),
        ("T002", "last"),
    ]


def test_the_report_of_an_error_has_its_frames_and_its_exchange_and_blames_nobody() -> None:
    _, finding = ask([rule_of("T001", fail)], "x.tape")
    assert finding.evidence.startswith("fail:")
    assert (finding.tape, finding.exchange, finding.blame) == ("x.tape", 3, None)
    assert (finding.line, finding.t_ns, finding.severity) == (None, None, Severity.ERROR)


def test_without_an_error_nothing_is_added() -> None:
    assert ask([rule_of("T001", lambda _: ())], "x.tape") == []


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
    for known in RULES:
        target = f"../proxy/deltatape/rules/docs/{known.code}.md"
        assert f"\n| [{known.code}]({target}) | {known.name} | {known.severity} | " in text
        assert (ROOT / "docs" / target).is_file()
    assert "| The arguments of a call end too early. |" in text


def test_the_committed_page_is_what_the_rules_say() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "findings-docs"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_defaults_are_what_settings_are_without_a_word() -> None:
    assert Settings() == DEFAULTS
    assert DEFAULTS.stall_s == 10.0
