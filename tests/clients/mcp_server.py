"""An MCP server by the official SDK, on stdin and stdout, or at a port.

argv: the port, if it is to listen. Its tool fails, or ends it, where the city says so.
"""

import os
import sys
from importlib import import_module

server = import_module("mcp.server.mcpserver").MCPServer("weather")


@server.tool()  # type: ignore[untyped-decorator, unused-ignore]
def get_weather(city: str, unit: str = "C") -> str:
    """Say what the weather is."""
    if city == "Atlantis":
        raise ValueError(city)
    if city == "Pompeii":
        os._exit(3)
    return f"{city}: 21 {unit}"


if sys.argv[1:]:
    server.run("streamable-http", port=int(sys.argv[1]))
else:
    server.run("stdio")
