"""What is said of exchanges where deltatape's analysis cannot be had."""

import sys
from typing import cast

import pytest

from deltatape.gateway.tapes import OpenTape
from deltatape.mitm.analysed import Analysed
from deltatape.mitm.live import Plain, find_live
from helpers.upstream import run


def test_all_of_deltatape_analyses() -> None:
    assert find_live() is Analysed


def test_without_the_rest_only_the_end_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "deltatape.mitm.analysed")
    monkeypatch.setitem(sys.modules, "deltatape.gateway.analysis", None)
    assert find_live() is Plain
    lines: list[str] = []
    live = Plain(lines.append)
    live.begin(1)
    live.put(1, b"[]\n")
    live.ended(cast("OpenTape", None), 1, "POST /x 200 complete")
    run(live.finish())
    assert lines == ["#1 POST /x 200 complete"]
    assert (live.with_findings, live.worst) == (None, None)
