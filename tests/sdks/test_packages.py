"""A `--with` names a package in a version; what else it may be is told."""

import pytest

from deltatape.errors import UsageError
from deltatape.sdks.packages import PACKAGES, known, parse_spec
from deltatape.sdks.table import Ecosystem


@pytest.mark.parametrize(
    ("text", "ecosystem", "name", "version"),
    [
        ("openai==3.54.0", Ecosystem.PYTHON, "openai", "3.54.0"),
        ("openai==3.54.*", Ecosystem.PYTHON, "openai", "3.54.*"),
        ("langchain-openai==1.7rc1", Ecosystem.PYTHON, "langchain-openai", "1.7rc1"),
        ("openai@7", Ecosystem.NODE, "openai", "7"),
        ("@anthropic-ai/sdk@0.60.1", Ecosystem.NODE, "@anthropic-ai/sdk", "0.60.1"),
    ],
)
def test_the_sign_tells_where_a_package_comes_from(
    text: str, ecosystem: Ecosystem, name: str, version: str
) -> None:
    spec = parse_spec(text)
    assert spec == (text, ecosystem, name, version)
    assert spec.requirements == (text,)


def test_packages_that_work_with_it_come_in_the_versions_that_fit() -> None:
    assert parse_spec("ai@6.0.1").requirements == (
        "ai@6.0.1",
        "@ai-sdk/openai-compatible@2",
        "@ai-sdk/openai@3",
        "@ai-sdk/anthropic@3",
    )
    assert parse_spec("@ai-sdk/openai@4").requirements == ("@ai-sdk/openai@4", "ai@7")


@pytest.mark.parametrize("text", ["openai", "openai=3", "openai==", "ai@latest", "ai@6; rm", ""])
def test_what_names_no_version_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"openai==3\.54\.0 is, from PyPI, and ai@6, from npm"):
        parse_spec(text)


def test_an_unknown_package_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(UsageError, match=r"unknown; known are openai==VERSION, .*, ai@VERSION, "):
        parse_spec("requests==2.0")
    with pytest.raises(UsageError, match="unknown"):
        parse_spec("ai==6")


def test_a_version_without_the_interface_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'ai@4\.3\.1': too old; ai 5 and later are accepted"):
        parse_spec("ai@4.3.1")


def test_the_known_ones_go_by_dialect() -> None:
    assert known("gemini") == ["google-genai==VERSION"]
    assert known("cohere") == []
    assert len(known()) == sum(len(packages) for packages in PACKAGES.values())
