"""Which SDKs `why --with` knows, and how one is named: `openai==3.54.0` (pip), `ai@6` (npm).

Values only: a name is read here, and looked up; `install` installs it.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from deltatape.errors import UsageError
from deltatape.sdks.table import Ecosystem

_NAMED = re.compile(
    r"(?P<package>@?[A-Za-z0-9][\w./-]*?)(?P<sign>==|@)(?P<version>[0-9][0-9A-Za-z.*+-]*)"
)
_CHAT, _RESPONSES, _MESSAGES = "openai-chat", "openai-responses", "anthropic-messages"
_SIGNS = {"==": Ecosystem.PYTHON, "@": Ecosystem.NODE}


class Package(NamedTuple):
    """An SDK that a runner can drive."""

    dialects: tuple[str, ...]
    """What it reads."""
    since: int
    """The first major version with the interface that the runner uses."""
    beside: Mapping[str, int] = {}
    """Packages that do a part of its work, and how far their major version is from its own."""


PACKAGES: Mapping[Ecosystem, Mapping[str, Package]] = {
    Ecosystem.PYTHON: {
        "openai": Package((_CHAT, _RESPONSES), 1),
        "anthropic": Package((_MESSAGES,), 0),
        "google-genai": Package(("gemini",), 1),
        "langchain-openai": Package((_CHAT, _RESPONSES), 1),
        "litellm": Package((_CHAT, _MESSAGES), 1),
    },
    Ecosystem.NODE: {
        "openai": Package((_CHAT, _RESPONSES), 4),
        "@anthropic-ai/sdk": Package((_MESSAGES,), 0),
        "ai": Package(
            (_CHAT, _RESPONSES, _MESSAGES),
            5,
            {"@ai-sdk/openai-compatible": -4, "@ai-sdk/openai": -3, "@ai-sdk/anthropic": -3},
        ),
        "@ai-sdk/openai": Package((_CHAT,), 2, {"ai": 3}),
    },
}


class SdkSpec(NamedTuple):
    """An SDK in a version, as the user named it."""

    text: str
    ecosystem: Ecosystem
    name: str
    version: str

    @property
    def package(self) -> Package:
        """What is known of it."""
        return PACKAGES[self.ecosystem][self.name]

    @property
    def requirements(self) -> tuple[str, ...]:
        """What is to be installed, as pip and npm take it."""
        major = int(self.version.partition(".")[0])
        beside = self.package.beside.items()
        return (self.text, *(f"{name}@{major + apart}" for name, apart in beside))


def parse_spec(text: str) -> SdkSpec:
    """One `--with`.

    Raises:
        UsageError: not such a name, an unknown package, or one that is too old.
    """
    match = _NAMED.fullmatch(text)
    if match is None:
        raise UsageError(
            f"--with {text!r}: not a package with its version; openai==3.54.0 is, from PyPI, and"
            " ai@6, from npm"
        )
    ecosystem, name, version = _SIGNS[match["sign"]], match["package"], match["version"]
    package = PACKAGES[ecosystem].get(name)
    if package is None:
        raise UsageError(f"--with {text!r}: unknown; known are {', '.join(known())}")
    if int(version.partition(".")[0]) < package.since:
        raise UsageError(f"--with {text!r}: too old; {name} {package.since} and later are accepted")
    return SdkSpec(text=text, ecosystem=ecosystem, name=name, version=version)


def known(dialect: str = "") -> list[str]:
    """The SDKs, those that read `dialect` if one is given: `openai==VERSION`, `ai@VERSION`."""
    return [
        f"{name}{sign}VERSION"
        for sign, ecosystem in _SIGNS.items()
        for name, package in PACKAGES[ecosystem].items()
        if not dialect or dialect in package.dialects
    ]
