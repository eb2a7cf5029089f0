"""What a request says of a tool: as much as mutators of its arguments must know."""

from collections.abc import Iterator

from deltatape.model.exchange import Exchange
from deltatape.mutate._json import at, listed
from deltatape.wire.json_value import parse

_SCHEMAS = (("parameters",), ("input_schema",), ("inputSchema", "json"))


def needs(exchange: Exchange, name: str) -> bool | None:
    """Whether the tool called `name` has parameters that are required; None if unknown."""
    for tool in _tools(exchange):
        if at(tool, "name") == name:
            for path in _SCHEMAS:
                if isinstance(at(tool, *path), dict):
                    return bool(listed(tool, *path, "required"))
    return None


def _tools(exchange: Exchange) -> Iterator[object]:
    """The tools of the request, without what some APIs wrap them in."""
    asked = parse(exchange.request.body.decode(errors="replace")).value
    for tool in (*listed(asked, "tools"), *listed(asked, "toolConfig", "tools")):
        yield at(tool, "function") or at(tool, "toolSpec") or tool
