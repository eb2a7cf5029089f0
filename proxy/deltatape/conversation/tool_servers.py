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
from functools import cached_property

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
        turns: the turns of some of the exchanges.
        digests: the digests of all exchanges, in the order of their requests.
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
    servers = _Servers(digests, tools)
    for turn in turns:
        read_backs = tuple(
            replace(each, with_server=tuple(servers.calls(each))) for each in turn.read_backs
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


class _Servers:
    """The calls in requests to servers, and the calls in replies, by tape and tool.

    The work for a reply depends on the calls of its tools, not on the number of exchanges.

    Args:
        digests: the digests of all exchanges, in the order of their requests.
        tools: what servers call them, by what `_plain` makes of that.
    """

    def __init__(self, digests: Sequence[Digest], tools: dict[str, str]) -> None:
        self._digests = digests
        self._tools = tools
        self._served: dict[tuple[str, str], list[tuple[int, ServedCall]]] = {}
        """Calls by tape and tool, each with the number of the exchange that asked the server."""
        for each in digests:
            for call in each.served:
                self._served.setdefault((each.tape, call.name), []).append((each.exchange, call))

    @cached_property
    def _called(self) -> dict[tuple[str, str], list[tuple[Digest, _OwnCall]]]:
        """The calls of all replies."""
        found: dict[tuple[str, str], list[tuple[Digest, _OwnCall]]] = {}
        for each in self._digests:
            for call in each.calls:
                if tool := _tool(call.name or "", self._tools):
                    called = (each, _OwnCall(call, tool))
                    found.setdefault((each.tape, tool), []).append(called)
        return found

    def calls(self, read_back: ReadBack) -> Iterator[CallWithServer]:
        """Yield the calls of the reply whose tools a server has.

        Servers were asked for them between the reply and the request that repeats it.
        """
        reply, later = read_back.reply, read_back.later
        own = [
            _OwnCall(call, tool)
            for call in reply.calls
            if call.kind is CallKind.FUNCTION and (tool := _tool(call.name or "", self._tools))
        ]
        served = {call.tool: self._served.get((later.tape, call.tool), []) for call in own}
        asked = {
            tool: [call for number, call in calls if reply.exchange < number < later.exchange]
            for tool, calls in served.items()
        }
        same = [[each for each in asked[call.tool] if call.is_asked_by(each)] for call in own]
        taken = {id(each) for found in same for each in found}
        alone = [call.tool for call, found in zip(own, same, strict=True) if not found]
        for call, found in zip(own, same, strict=True):
            of_tool = [each for each in asked[call.tool] if id(each) not in taken]
            is_it, unclear = found, False
            if not found and of_tool:
                is_it = (
                    [] if alone.count(call.tool) > 1 else self._of_nobody_else(of_tool, read_back)
                )
                unclear = not is_it
            yield CallWithServer(
                delivered=call.delivered,
                tool=call.tool,
                served=tuple(is_it),
                unclear=unclear,
                before=any(
                    call.is_asked_by(each)
                    for number, each in served[call.tool]
                    if number < reply.exchange
                ),
            )

    def _of_nobody_else(self, asked: Sequence[ServedCall], read_back: ReadBack) -> list[ServedCall]:
        """Return calls that are one, tried several times; none if another reply asks for it."""
        if len({each.arguments for each in asked}) > 1:
            return []
        called = self._called.get((read_back.later.tape, asked[0].name), [])
        others = (call for digest, call in called if digest is not read_back.reply)
        return [] if any(each.is_asked_by(asked[0]) for each in others) else [*asked]


def _is_same(delivered: DeliveredCall, served: ServedCall) -> bool:
    asked = RepeatedCall(id=None, name=served.name, arguments=served.arguments)
    return first_difference(delivered, asked) is None
