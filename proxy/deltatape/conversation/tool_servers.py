"""Find what tool servers were asked for the calls of a reply.

Between the reply and the request that repeats it, a client asks the servers. A call is theirs if a
server on the tape lists its tool; clients put the server's name in front of the tool's, and write
other characters for some (`mcp__weather__get-weather`). Of the calls that servers were asked for in
that time, those with the same arguments are it. Others are it only if there is no doubt: one call
of the tool is left on either side, and no other reply on the tape asks for what the server was
asked. Programs that run side by side ask the same servers.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from deltatape.model.digest import CallWithServer, DeliveredCall, Digest, ReadBack
from deltatape.model.reply import CallKind
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.tool_server import ServedCall
from deltatape.model.turn import Turn
from deltatape.rules.repeated import first_difference

_SYMBOLS = re.compile(r"[^A-Za-z0-9]")


def with_servers(turns: Iterable[Turn], digests: Sequence[Digest]) -> Iterator[Turn]:
    """Yield the turns; their replies' calls have what tool servers were asked for them.

    Args:
        turns: of some of the exchanges.
        digests: of all exchanges, in the order of their requests.
    """
    turns = tuple(turns)
    if not any(each.reply.calls for turn in turns for each in turn.read_backs):
        yield from turns
        return
    tools = {_plain(name): name for digest in digests for name in digest.listed}
    tools |= {_plain(call.name): call.name for digest in digests for call in digest.served}
    if not tools:
        yield from turns
        return
    for turn in turns:
        read_backs = tuple(
            replace(each, with_server=tuple(_Window(each, digests).calls(tools)))
            for each in turn.read_backs
        )
        yield replace(turn, read_backs=read_backs) if read_backs else turn


def _plain(name: str) -> str:
    return _SYMBOLS.sub("_", name).lower()


def _tool(called: str, tools: dict[str, str]) -> str | None:
    """Return what a server calls the tool that the model calls `called`; None: it has none such.

    The longest name that fits: a server may have `get` and `user_get`.
    """
    plain = _plain(called)
    ends = (plain[at:] for at in range(len(plain)) if at == 0 or plain[at - 1] == "_")
    return next((tools[end] for end in ends if end in tools), None)


@dataclass(frozen=True, slots=True)
class _OwnCall:
    """A call of the reply that a server has the tool of."""

    delivered: DeliveredCall
    tool: str

    def is_asked_by(self, served: ServedCall) -> bool:
        """Return whether a server was asked for this very call."""
        return served.name == self.tool and _is_same(self.delivered, served)


class _Window:
    """The calls that servers were asked for between a reply and the request that repeats it."""

    def __init__(self, read_back: ReadBack, digests: Sequence[Digest]) -> None:
        reply, later = read_back.reply, read_back.later
        self._reply = reply
        on_tape = [each for each in digests if each.tape == later.tape]
        self._asked = [
            call
            for each in on_tape
            if reply.exchange < each.exchange < later.exchange
            for call in each.served
        ]
        self._earlier = [
            call for each in on_tape if each.exchange < reply.exchange for call in each.served
        ]
        self._others = [each for each in on_tape if each.calls and each is not reply]

    def calls(self, tools: dict[str, str]) -> Iterator[CallWithServer]:
        """Yield the reply's calls whose tools a server has."""
        own = [
            _OwnCall(call, tool)
            for call in self._reply.calls
            if call.kind is CallKind.FUNCTION and (tool := _tool(call.name or "", tools))
        ]
        same = [[each for each in self._asked if call.is_asked_by(each)] for call in own]
        taken = {id(each) for found in same for each in found}
        left = [each for each in self._asked if id(each) not in taken]
        alone = [call.tool for call, found in zip(own, same, strict=True) if not found]
        for call, found in zip(own, same, strict=True):
            of_tool = [each for each in left if each.name == call.tool]
            served, unclear = found, False
            if not found and of_tool:
                served = [] if alone.count(call.tool) > 1 else self._of_nobody_else(of_tool, tools)
                unclear = not served
            yield CallWithServer(
                delivered=call.delivered,
                tool=call.tool,
                served=tuple(served),
                unclear=unclear,
                before=any(call.is_asked_by(each) for each in self._earlier),
            )

    def _of_nobody_else(
        self, asked: Sequence[ServedCall], tools: dict[str, str]
    ) -> list[ServedCall]:
        """Return calls that are one, tried several times; none if another reply asks for it."""
        if len({each.arguments for each in asked}) > 1:
            return []
        others = (
            _OwnCall(call, tool)
            for each in self._others
            for call in each.calls
            if (tool := _tool(call.name or "", tools))
        )
        return [] if any(each.is_asked_by(asked[0]) for each in others) else [*asked]


def _is_same(delivered: DeliveredCall, served: ServedCall) -> bool:
    asked = RepeatedCall(id=None, name=served.name, arguments=served.arguments)
    return first_difference(delivered, asked) is None
