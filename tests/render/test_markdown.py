import re
from dataclasses import replace

import pytest

from deltatape.model.explanation import Explanation
from deltatape.model.finding import Confidence
from deltatape.render.markdown import code, explanation_markdown, inert
from deltatape.why.explain import explain
from helpers.chat import FINISH, choice
from helpers.exchanges import TEXT, USER, asks, assistant, call, conversation, pasted, result
from helpers.explanations import accused, lost_arguments, suspect, tried


def test_a_story_begins_with_the_verdict_and_ends_with_the_folded_timeline() -> None:
    told = explanation_markdown(lost_arguments())
    assert told.startswith(
        "### Verdict: app, proven (C002)\n\n`x.tape#1` `POST /v1/chat/completions`"
    )
    assert "\n**Fix:** Append the arguments of every fragment.\n" in told
    assert '| 0 | `get` | `c1` | `{"a":1}` | **differs:** (no bytes) |\n' in told
    assert "\n- **C002 arguments-changed-by-app** (error, app, proven) `x.tape#2, line 200" in told
    assert "<details><summary>Timeline</summary>\n\n```text\n" in told
    assert told.endswith("</details>\n\nWritten by `deltatape why` from the tape alone.\n")


def test_suspects_and_clients_are_tables() -> None:
    explanation = accused(
        lost_arguments(),
        suspect(),
        tried=(tried("a@1"), tried("b", problem="no npm"), replace(tried("c"), differs=False)),
    )
    told = explanation_markdown(explanation)
    row = "| `single-current-call` | explains what the app did (key=single) | keeps one call where"
    assert row in told
    assert "| a@<!-- -->1 | **wrong** | `no call` |" in told
    assert "| b | not tried | `no npm` |" in told
    assert "| c | right | `no call` |" in told


def test_calls_that_are_lost_added_and_kept() -> None:
    heard = assistant(("c1", "get", '{"a":1}'), ("c9", "put", "{}"))
    two = asks(USER, heard, result("c1"), result("c9"))
    told = explanation_markdown(
        explain(conversation((asks(USER), [*call(), FINISH]), (two, [TEXT])), 1)
    )
    assert '| 0 | `get` | `c1` | `{"a":1}` | as delivered |' in told
    assert "|  | `put` | `c9` | never delivered | `{}` |" in told
    said = [*call(), *call(index=1), FINISH]
    lost = asks(USER, assistant(("c1", "get", '{"a":1}')), result("c1"))
    told = explanation_markdown(explain(conversation((asks(USER), said), (lost, [TEXT])), 1))
    assert '| 1 | `get` | `c2` | `{"a":1}` | **lost** |' in told


def test_a_call_that_nothing_repeats_and_a_response_that_is_missing() -> None:
    (alone,) = conversation((asks(USER), [*call(), FINISH]))
    assert "| not on the tape |" in explanation_markdown(explain([alone]))
    missing = replace(alone, response=None, reads=())
    told = explanation_markdown(explain([missing]))
    assert ", no response, 0 events in 0 reads" in told
    assert "| call |" not in told


def test_text_of_a_tape_names_nobody_and_links_nowhere() -> None:
    assert inert("@octocat #12 see https://x.invalid www.x.invalid") == (
        "@<!-- -->octocat #<!-- -->12 see https://<!-- -->x.invalid www.<!-- -->x.invalid"
    )
    assert inert("*a* _b_ `c` [d](e) <f> |g| $h$ ~i~ &amp; \\") == (
        r"\*a\* \_b\_ \`c\` \[d\](e) \<f\> \|g\| \$h\$ \~i\~ \&amp; " + "\\\\"
    )
    assert inert("a\n# b") == "a\\\\n#<!-- --> b"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("get", "`get`"),
        ("", ""),
        (" ", ""),
        ("a`b", "``a`b``"),
        ("`a`", "`` `a` ``"),
        ("a|b", "`a\\|b`"),
        ("a\nb", "`a\\nb`"),
    ],
)
def test_code_spans_hold_any_text(text: str, shown: str) -> None:
    assert code(text) == shown


def test_no_fence_is_closed_by_what_a_tape_says() -> None:
    explanation = explain([pasted(TEXT)])
    fenced = replace(explanation.timeline[0], what="````js\nalert")
    told = explanation_markdown(replace(explanation, timeline=(fenced,)))
    fences = re.findall(r"^`{3,}", told, re.MULTILINE)
    assert fences == ["`````", "`````"]


def test_a_finding_without_evidence_has_none() -> None:
    explanation = lost_arguments()
    bare = replace(explanation.findings[0], evidence="", against=None, excluded=())
    told = explanation_markdown(replace(explanation, findings=(bare,)))
    assert f"{inert(bare.message)}\n\n<details>" in told


def test_a_story_without_findings_has_none_listed() -> None:
    explanation: Explanation = explain([pasted(TEXT)])
    assert "- **" not in explanation_markdown(replace(explanation, findings=()))


def test_a_call_in_text_is_shown_as_written_and_not_compared() -> None:
    written = choice({"content": '<tool>{"tool_name": "get", "arguments": {}}</tool>'})
    tape = conversation(
        (asks(USER), [written, *call(), FINISH]),
        (asks(USER, assistant(("c1", "get", '{"a":1}')), result("c1")), [TEXT]),
    )
    told = explanation_markdown(explain(tape, 1))
    assert "| 0 | `get` |  | `{}` |  |" in told
    assert told.count("as delivered |") == 1


def test_what_is_only_possible_is_a_list_below_the_verdict() -> None:
    told = lost_arguments()
    maybe = replace(told.findings[0], confidence=Confidence.POSSIBLE, message="it may be so")
    explanation = replace(told, verdict=replace(told.verdict, possible=(maybe,)))
    lines = explanation_markdown(explanation).splitlines()
    place = next(at for at, line in enumerate(lines) if line.startswith("- possible, not provable"))
    assert lines[place + 1] == ""
    assert lines[place + 2].startswith("**Fix:**")
