"""The protocol between the addon and deltatape: JSON lines over a socket.

The addon sends what happens (`AddonMessage`); deltatape sends the output of its child and when to
stop (`AddonCommand`). When deltatape ends, mitmproxy ends, too: otherwise nothing would end it, and
it would keep its port.
"""

import asyncio
import base64
import enum
import json
from collections.abc import Callable, Mapping, MutableMapping
from typing import TypeAlias

from deltatape.mitm.flows import AddonOptions
from deltatape.model.tape_summary import LogStream

VARIABLE = "DELTATAPE_MITM_PARENT"
"""Names the file descriptor of the socket."""
PLAYER = "DELTATAPE_MITM_PLAYER"
"""Names the URL of the player to which requests are redirected."""
Fields: TypeAlias = Mapping[str, object]


class AddonMessage(enum.StrEnum):
    """Kinds of messages from the addon."""

    READY = "ready"
    """`url`, `tape`, `confdir`, `version`."""
    TRAFFIC = "traffic"
    """`what`: `client` at the first connection, `exchange` at the first request that is taped."""
    PASSED = "passed"
    """`host`: traffic that passes undecrypted and untaped; sent once per host."""
    LINE = "line"
    """`text`: about an exchange or a connection."""
    ALARM = "alarm"
    """`text`: a problem with taping."""
    STOPPING = "stopping"
    """`active`: how many streams are still open."""
    ENDED = "ended"
    """`exchanges`, `with_findings` (null: not analysed), `worst`, `lost_records`, `lost_bytes`."""


class AddonCommand(enum.StrEnum):
    """Kinds of messages to the addon."""

    STOP = "stop"
    """`reason`, `code`, `grace_s`."""
    LOG = "log"
    """`stream`, `data`: base64, `left_out`: see `child.output.Tee`."""


def log_fields(stream: str, data: bytes, left_out: int) -> dict[str, object]:
    """Return the fields of `AddonCommand.LOG`."""
    return {"stream": stream, "data": base64.b64encode(data).decode(), "left_out": left_out}


def parse_log(fields: Fields) -> tuple[LogStream, bytes, int]:
    """Read the fields of `AddonCommand.LOG`."""
    left_out = fields["left_out"]
    assert isinstance(left_out, int)
    return LogStream(str(fields["stream"])), base64.b64decode(str(fields["data"])), left_out


class AddonSocket(asyncio.Protocol):
    """One end of the socket.

    Args:
        on_message: called with the kind and the fields of each message from the other end.
        on_gone: called when the other end is gone.
    """

    def __init__(
        self, on_message: Callable[[str, Fields], None], on_gone: Callable[[], None]
    ) -> None:
        self._on_message = on_message
        self._on_gone = on_gone
        self._transport: asyncio.Transport | None = None
        self._unsent: list[bytes] = []
        self._received = b""

    def send(self, kind: AddonMessage | AddonCommand, **fields: object) -> None:
        """Send a message; keep it until the socket is connected."""
        data = json.dumps([kind, fields]).encode() + b"\n"
        if self._transport is None:
            self._unsent.append(data)
        else:
            self._transport.write(data)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.writelines(self._unsent)
        self._unsent.clear()

    def data_received(self, data: bytes) -> None:
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            kind, fields = json.loads(line)
            self._on_message(kind, fields)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._on_gone()


# Values for mitmproxy's options that deltatape hands to the mitmproxy it starts.
#
# In an environment variable: every user of a machine can read command lines, but only the owner of
# a process can read its environment. When it is loaded, the addon removes the variable, so that
# child processes of mitmproxy do not inherit it, and sets the options. What the user has set, after
# `--` or in mitmproxy's `config.yaml`, stays.

OPTIONS_VARIABLE = "DELTATAPE_MITM_OPTIONS"
CA_FILE = "ssl_verify_upstream_trusted_ca"
CA_FOLDER = "ssl_verify_upstream_trusted_confdir"
CLIENT_CERTS = "client_certs"
PROXY_LOGIN = "upstream_auth"
_GROUPS = ((CA_FILE, CA_FOLDER), (CLIENT_CERTS,), (PROXY_LOGIN,))
"""Options that depend on each other: if the user has set one, none of them is changed."""


def options_variable(values: Mapping[str, str]) -> dict[str, str]:
    """Return the variable that passes these options on."""
    return {OPTIONS_VARIABLE: json.dumps(dict(values))}


def apply_options(options: AddonOptions, environment: MutableMapping[str, str]) -> None:
    """Read the variable, if there is one, and set options that the user has not set."""
    values: dict[str, str] = json.loads(environment.pop(OPTIONS_VARIABLE, "{}"))
    for names in _GROUPS:
        if all(getattr(options, name, None) is None for name in names):
            options.update_known(**{name: values[name] for name in names if name in values})
