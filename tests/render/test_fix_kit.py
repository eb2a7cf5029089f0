import ast
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.model.finding import Blame
from deltatape.render.fix_kit import fix_kit
from deltatape.why.explain import explain
from helpers.exchanges import conversation
from helpers.explanations import accused, lost_arguments, suspect
from helpers.needed import skip_unless
from helpers.watched import CALLS, watched


def test_a_kit_for_python_is_a_test_that_names_the_tape_and_a_brief() -> None:
    kit = fix_kit(accused(lost_arguments(), suspect()), 2, name="x-1", node=False)
    assert (kit.tape, kit.test, kit.brief) == ("x-1.tape", "test_x_1.py", "BRIEF.md")
    ast.parse(kit.test_text)
    assert 'with_name("x-1.tape")' in kit.test_text
    assert "fails for C002" in kit.test_text
    assert "$" not in kit.test_text
    assert "The app behaves like `single-current-call`: it keeps one call where" in kit.brief_text
    assert "pytest test_x_1.py" in kit.brief_text
    assert "VERDICT   app, proven  (C002)" in kit.brief_text


def test_a_kit_for_javascript_is_a_module_that_node_can_read(tmp_path: Path) -> None:
    kit = fix_kit(accused(lost_arguments()), 2, name="x-1", node=True)
    assert kit.test == "x-1.test.mjs"
    assert "npx vitest run x-1.test.mjs" in kit.brief_text
    assert "behaves like" not in kit.brief_text.split("## What happened")[0]
    node = shutil.which("node")
    skip_unless(node, "no Node.js")
    path = tmp_path / kit.test
    path.write_text(kit.test_text)
    subprocess.run([str(node), "--check", path], check=True, timeout=300)


def test_where_the_app_fell_silent_the_player_sees_it() -> None:
    tape = watched(conversation(CALLS), 42.5, stop="child-exit", exit_code=0)
    assert "fails for D003" in fix_kit(explain(tape), 1, name="x", node=False).test_text


@pytest.mark.parametrize("node", [True, False])
def test_what_no_player_sees_is_looked_for_in_a_recording(tmp_path: Path, *, node: bool) -> None:
    explanation = lost_arguments()
    (first, *_) = explanation.findings
    seen = replace(explanation, findings=(replace(first, code="A001", blame=Blame.APP),))
    text = fix_kit(seen, 2, name="x-1", node=node).test_text
    assert "REQUESTS = 2" in text
    assert '"record"' in text
    assert "A001" in text
    if not node:
        ast.parse(text)
    elif shutil.which("node"):
        path = tmp_path / "x.test.mjs"
        path.write_text(text)
        subprocess.run(["node", "--check", path], check=True, timeout=300)


@pytest.mark.slow
def test_nothing_of_a_tape_stands_in_a_test() -> None:
    evil = lost_arguments(name='"""\nimport os #$codes')
    for node in (True, False):
        assert "import os #" not in fix_kit(evil, 2, name="x", node=node).test_text
    assert "$codes" in fix_kit(evil, 2, name="x", node=False).brief_text


def test_what_a_brief_says_of_a_suspect_is_no_markup() -> None:
    hostile = replace(suspect(), says="makes `<script>` of it, ask @octocat")
    brief = fix_kit(accused(lost_arguments(), hostile), 2, name="x", node=False).brief_text
    assert "makes \\`\\<script\\>\\` of it, ask @<!-- -->octocat" in brief
