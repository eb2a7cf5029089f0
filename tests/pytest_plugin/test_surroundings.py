"""The environment for the length of a test."""

import os

import pytest

from deltatape.pytest_plugin.surroundings import environment


def test_what_was_changed_is_what_it_was_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTATAPE_TEST_KEPT", "kept")
    monkeypatch.setenv("DELTATAPE_TEST_CHANGED", "before")
    monkeypatch.setenv("DELTATAPE_TEST_GONE", "there")
    monkeypatch.delenv("DELTATAPE_TEST_NEW", raising=False)
    before = dict(os.environ)
    wanted = {**before, "DELTATAPE_TEST_CHANGED": "within", "DELTATAPE_TEST_NEW": "new"}
    del wanted["DELTATAPE_TEST_GONE"]
    with environment(wanted):
        assert dict(os.environ) == wanted
        monkeypatch.setenv("DELTATAPE_TEST_KEPT", "changed by the test itself")
        monkeypatch.delenv("DELTATAPE_TEST_NEW")
    assert dict(os.environ) == {**before, "DELTATAPE_TEST_KEPT": "changed by the test itself"}


def test_an_error_undoes_it_as_well() -> None:
    before = dict(os.environ)
    with pytest.raises(ValueError, match="of the test"), environment({"PATH": os.defpath}):
        raise ValueError("of the test")
    assert dict(os.environ) == before
