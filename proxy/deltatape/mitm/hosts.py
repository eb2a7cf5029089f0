"""The hosts to tape: LLM providers, and what the user adds.

A pattern is a host name, or one with `*` for any characters (`*.example.com`), in any case.
"""

import re
from collections.abc import Iterable

from deltatape.errors import UsageError
from deltatape.providers import provider_of_host

_PATTERN = re.compile(r"[A-Za-z0-9*._:-]{1,253}")


class Hosts:
    """The hosts that are taped."""

    def __init__(self, added: Iterable[str]) -> None:
        """Args: added: the user's own patterns.

        Raises:
            UsageError: a pattern is invalid.
        """
        self._added = tuple(_compile(pattern) for pattern in added)

    def has(self, host: str) -> bool:
        """Return whether traffic to `host`, a name or an address without a port, is taped."""
        name = host.lower().rstrip(".")
        if provider_of_host(name) is not None:
            return True
        return any(pattern.fullmatch(name) for pattern in self._added)


def _compile(pattern: str) -> re.Pattern[str]:
    if not _PATTERN.fullmatch(pattern):
        raise UsageError(
            f"{pattern!a}: invalid host pattern; use a name without scheme and port, with * for any"
            " characters, such as *.example.com"
        )
    return re.compile(re.escape(pattern.lower().rstrip(".")).replace(r"\*", ".*"))
