"""`--fault`: deliberate faults, as `KIND[=VALUE][,OPTION=VALUE]...`.

    stall[=DURATION]   nothing comes any more, or not for so long
    drip[=DURATION]    the rest comes in small pieces, so long after each other (bytes=N each)
    cut                the connection is closed before the answer is whole
    reset              the connection is reset
    end                the answer ends there as if it were whole
    error-event        an error in the form of the dialect comes, and nothing behind it
    status=CODE        another answer, an error of the provider; with retry-after=SECONDS,
                       header=NAME:VALUE; html: of a gateway, which answers with a page
    drop               an event is missing
    duplicate          an event comes twice
    reorder            an event comes behind the one that follows it
    corrupt            an event is damaged

`at=` says where (see `where`), `times=N` how many answers it strikes, `exchange=N` only that one.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from deltatape.dialects import OVERLOADED
from deltatape.errors import UsageError
from deltatape.model.exchange import EndReason, Exchange, Headers
from deltatape.mutate import MutationChoices, SeededChoices
from deltatape.vary import fault_effects
from deltatape.vary.coded_bodies import plain, recoded
from deltatape.vary.failures import ProviderFailure, answered
from deltatape.vary.fault_positions import (
    MIDDLE,
    AnswerPosition,
    AnswerPositions,
    PlaceKind,
    parse_duration,
    parse_where,
)

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_STATUS = re.compile(r"[45][0-9]{2}")
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,3})?")
_COUNT = re.compile(r"[1-9][0-9]{0,8}")
_DRIP_BYTES = 16
_DRIP_NS = 100_000_000
_OVERLOADED = ProviderFailure(status=OVERLOADED)


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedFault:
    """A deliberate fault.

    Attributes:
        text: as the user wrote it.
        kind: which, see the head of this module.
        where: where it strikes.
        times: how many answers it strikes; None: every one.
        exchange: the number, on its tape, of the only exchange it strikes; None: any.
        wait_ns: how long a stall lasts (None: for ever), how far apart drips come.
        size: bytes of a drip.
        failure: what the provider says.
    """

    text: str
    kind: str
    where: AnswerPosition = MIDDLE
    times: int | None = None
    exchange: int | None = None
    wait_ns: int | None = None
    size: int = _DRIP_BYTES
    failure: ProviderFailure = _OVERLOADED

    @property
    def ends_early(self) -> bool:
        """Return whether the client gets no complete answer, so that a retry is expected."""
        return self.kind in _ENDING or (self.kind == "stall" and self.wait_ns is None)

    def told_by_bytes(self, recorded: Exchange) -> "InjectedFault":
        """Return the fault at the byte that came at its time, if it has one.

        At another speed that byte comes at another time, and at once if nothing waits.
        """
        bare = plain(recorded) if self.where.kind is PlaceKind.TIME else None
        if bare is None:
            return self
        offset = AnswerPositions(bare, SeededChoices(0)).offset(self.where)
        size = len(bare.body)
        # Behind the end there is no place, whatever the speed.
        number = size + 1 if offset is None else offset
        return replace(self, where=AnswerPosition(kind=PlaceKind.BYTE, number=number))

    def applied(self, exchange: Exchange, chance: MutationChoices) -> Exchange | None:
        """Return `exchange` with the fault; None if it has no place for it.

        Args:
            exchange: any.
            chance: chooses where there is a choice.
        """
        bare = plain(exchange)
        if self.kind == "status":
            places = AnswerPositions(bare or replace(exchange, reads=()), chance)
            return answered(exchange, places.analysis.reply.dialect, self.failure)
        if bare is None:
            return None
        struck = _KINDS[self.kind](self, bare, AnswerPositions(bare, chance))
        return None if struck is None else recoded(struck, exchange)


_Strike = Callable[[InjectedFault, Exchange, AnswerPositions], Exchange | None]


def _cut(reason: EndReason) -> _Strike:
    return lambda fault, bare, places: fault_effects.cut(bare, places, fault.where, reason)


def _drip(fault: InjectedFault, bare: Exchange, places: AnswerPositions) -> Exchange | None:
    wait_ns = _DRIP_NS if fault.wait_ns is None else fault.wait_ns
    return fault_effects.dripping(bare, places, fault.where, size=fault.size, wait_ns=wait_ns)


_KINDS: Mapping[str, _Strike] = {
    "stall": lambda fault, bare, at: fault_effects.stalled(bare, at, fault.where, fault.wait_ns),
    "drip": _drip,
    "cut": _cut(EndReason.UPSTREAM_CLOSED),
    "reset": _cut(EndReason.UPSTREAM_RESET),
    "end": _cut(EndReason.COMPLETE),
    "error-event": lambda fault, bare, at: fault_effects.failing(
        bare, at, fault.where, fault.failure
    ),
    "drop": lambda fault, bare, at: fault_effects.dropped(bare, at, fault.where),
    "duplicate": lambda fault, bare, at: fault_effects.doubled(bare, at, fault.where),
    "reorder": lambda fault, bare, at: fault_effects.swapped(bare, at, fault.where),
    "corrupt": lambda fault, bare, at: fault_effects.corrupted(bare, at, fault.where),
}
FAULTS = ("status", *_KINDS)
"""The kinds of faults."""
_ENDING = frozenset({"status", "cut", "reset", "end", "error-event"})
_REPEATABLE = frozenset({"header"})
_PLACELESS = frozenset({"status"})
_VALUED = frozenset({"status", "stall", "drip", "error-event"})


def parse_fault(text: str) -> InjectedFault:
    """Parse `KIND[=VALUE][,OPTION=VALUE]...`.

    Raises:
        UsageError: it is none, or an option does not fit its kind.
    """
    first, *options = text.split(",")
    kind, given, value = first.partition("=")
    if kind not in FAULTS:
        raise _bad(text, f"unknown fault {kind!r}; use one of {', '.join(FAULTS)}")
    fault = InjectedFault(text=text, kind=kind)
    if given and kind not in _VALUED:
        raise _bad(text, f"{kind} takes no value")
    if given or kind == "status":
        fault = _valued(fault, value)
    names = [option.partition("=")[0] for option in options]
    for option in options:
        name, _, value = option.partition("=")
        take = OPTIONS.get(name)
        if take is None:
            raise _bad(text, f"unknown option {name!r}; use one of {', '.join(OPTIONS)}")
        if name not in _REPEATABLE and names.count(name) > 1:
            raise _bad(text, f"{name} is given more than once; use another --fault for the second")
        fault = take(fault, value)
    return fault


def _bad(text: str, problem: str) -> UsageError:
    return UsageError(f"--fault {text!r}: {problem}")


def _valued(fault: InjectedFault, value: str) -> InjectedFault:
    """Parse the value after the `=` of a kind."""
    if fault.kind in ("status", "error-event"):
        if not _STATUS.fullmatch(value):
            example = f"{fault.kind}=429"
            raise _bad(fault.text, f"invalid status {value!r}; use 400 to 599, as in {example}")
        return replace(fault, failure=replace(fault.failure, status=int(value)))
    return replace(fault, wait_ns=_duration(fault, value))


def _duration(fault: InjectedFault, value: str) -> int:
    try:
        return parse_duration(value)
    except UsageError as error:
        raise _bad(fault.text, str(error)) from None


def _at(fault: InjectedFault, value: str) -> InjectedFault:
    if fault.kind in _PLACELESS:
        raise _bad(fault.text, f"{fault.kind} replaces the whole response and takes no at=")
    try:
        return replace(fault, where=parse_where(value))
    except UsageError as error:
        raise _bad(fault.text, str(error)) from None


def _number(fault: InjectedFault, name: str, value: str) -> int:
    if not _COUNT.fullmatch(value):
        raise _bad(fault.text, f"{name}={value!r}: not a whole number of at least 1")
    return int(value)


def _times(fault: InjectedFault, value: str) -> InjectedFault:
    return replace(fault, times=_number(fault, "times", value))


def _exchange(fault: InjectedFault, value: str) -> InjectedFault:
    return replace(fault, exchange=_number(fault, "exchange", value))


def _bytes(fault: InjectedFault, value: str) -> InjectedFault:
    if fault.kind != "drip":
        raise _bad(fault.text, "only drip takes bytes=, the size of each piece")
    return replace(fault, size=_number(fault, "bytes", value))


def _retry_after(fault: InjectedFault, value: str) -> InjectedFault:
    if not _SECONDS.fullmatch(value):
        raise _bad(
            fault.text,
            f"retry-after={value!r}: not a number of seconds; for other values use"
            " header=retry-after:...",
        )
    return _header(fault, f"retry-after:{value}")


def _html(fault: InjectedFault, value: str) -> InjectedFault:
    if fault.kind != "status" or value:
        raise _bad(
            fault.text,
            "html takes no value and goes only with status: the error body becomes an HTML page",
        )
    return replace(fault, failure=replace(fault.failure, html=True))


def _header(fault: InjectedFault, value: str) -> InjectedFault:
    name, _, content = value.partition(":")
    if fault.kind != "status":
        raise _bad(fault.text, "only status takes header= and retry-after=")
    if not _TOKEN.fullmatch(name) or not content.isascii() or not content.isprintable():
        raise _bad(fault.text, f"header={value!r}: not a header field such as retry-after:2")
    pair = (name.encode(), content.strip().encode())
    headers: Headers = (*fault.failure.headers, pair)
    return replace(fault, failure=replace(fault.failure, headers=headers))


OPTIONS: Mapping[str, Callable[[InjectedFault, str], InjectedFault]] = {
    "at": _at,
    "times": _times,
    "exchange": _exchange,
    "bytes": _bytes,
    "retry-after": _retry_after,
    "header": _header,
    "html": _html,
}
"""What a fault can say besides its kind, and what takes it."""
