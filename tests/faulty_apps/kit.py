"""The registry of faults: each is registered twice, with its fault and repaired."""

import functools
from collections.abc import Callable
from typing import Any

from odd_apps.kit import App
from odd_apps.provider import Script

FAULTS: dict[str, App] = {}


def fault(
    script: Script, healthy: Script | None = None, *, source: str | None = None
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Register a program that is told whether it is healthy; its docstring says what is wrong.

    Without `healthy` the provider does the same in both cases: the fault is the app's. With
    `source` the program is one in JavaScript, which gets `--healthy` as its argument.
    """

    def register(run: Callable[..., object]) -> Callable[..., object]:
        why = " ".join((run.__doc__ or "").split())
        for suffix, flag, provider in (("", False, script), ("-healthy", True, healthy or script)):
            name = run.__name__.replace("_", "-") + suffix
            assert name not in FAULTS, name
            more: dict[str, Any] = {"run": functools.partial(run, healthy=flag)}
            if source:
                more = {
                    "run": None,
                    "source": source,
                    "arguments": ("--healthy",) if flag else (),
                }
            FAULTS[name] = App(name=name, script=provider, why=why, **more)
        return run

    return register
