"""deltatape: a flight recorder for LLM streams.

    import deltatape
    tape = deltatape.open("x.tape")               # lazy; tape[1] is x.tape#1
    reply = deltatape.rebuild(tape[1])            # text, tool calls, finish reason
    findings = deltatape.check(tape[1])           # what is wrong, with evidence
    digests = map(deltatape.digest, tape)
    deltatape.check_conversation(digests)         # what the app made of earlier replies

Names are loaded when first used (PEP 562), so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from deltatape.conversation import check_conversation as check_conversation
    from deltatape.diagnose.check import check as check
    from deltatape.diagnose.digest import digest as digest
    from deltatape.diagnose.rebuild import rebuild as rebuild
    from deltatape.model.exchange import Exchange as Exchange
    from deltatape.store.reader import open_tape as open  # noqa: A004 - as in gzip.open

_HOMES = {
    "Exchange": ("deltatape.model.exchange", "Exchange"),
    "check": ("deltatape.diagnose.check", "check"),
    "check_conversation": ("deltatape.conversation", "check_conversation"),
    "digest": ("deltatape.diagnose.digest", "digest"),
    "open": ("deltatape.store.reader", "open_tape"),
    "rebuild": ("deltatape.diagnose.rebuild", "rebuild"),
}

__all__ = ["Exchange", "check", "check_conversation", "digest", "open", "rebuild"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'deltatape' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)
