"""The protocol between the addon and deltatape: JSON lines over a socket.

The addon sends what happens; deltatape sends the output of its child, what its analysis has found,
and when to stop. What concerns the recording are messages of `record.worker_messages`. When
deltatape ends, mitmproxy ends, too: otherwise nothing would end it, and it would keep its port.
"""

import asyncio
import base64
import json
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from deltatape.live.messages import MessageCodec
from deltatape.mitm.flows import AddonOptions
from deltatape.model.tape_summary import LogStream
from deltatape.record.worker_messages import (
    Closing,
    Counted,
    Drained,
    Ended,
    Hurry,
    Parsed,
    Pinned,
    RecordingNews,
    Refused,
    Said,
    Taped,
    Taping,
)

VARIABLE = "DELTATAPE_MITM_PARENT"
"""Names the file descriptor of the socket."""
PLAYER = "DELTATAPE_MITM_PLAYER"
"""Names the URL of the player to which requests are redirected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """From the addon: mitmproxy listens. `tape`: the path of the main tape; "" if there is none."""

    kind: ClassVar = "ready"
    url: str
    tape: str
    confdir: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstClient:
    """From the addon: an app has connected, to whatever host."""

    kind: ClassVar = "first-client"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """From the addon, once per host: its traffic passes undecrypted and untaped."""

    kind: ClassVar = "passed"
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """From the addon, last: its tapes are closed."""

    kind: ClassVar = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """To the addon: output of the command. `data`: in base64; see `child.output.Tee`."""

    kind: ClassVar = "log"
    stream: str
    data: str
    left_out: int

    @classmethod
    def of(cls, stream: str, data: bytes, left_out: int) -> "Log":
        return cls(stream=stream, data=base64.b64encode(data).decode(), left_out=left_out)

    def parts(self) -> tuple[LogStream, bytes, int]:
        return LogStream(self.stream), base64.b64decode(self.data), self.left_out


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEnd:
    """To the addon: the command has closed its output."""

    kind: ClassVar = "log-end"


@dataclass(frozen=True, slots=True, kw_only=True)
class PinAround:
    """To the addon: keep what was taped around an exchange that ended at that time of its tape."""

    kind: ClassVar = "pin-around"
    ticket: int
    key: int
    end_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StopTaping:
    """To the addon: end the recording; streams may continue for some seconds."""

    kind: ClassVar = "stop-taping"
    reason: str
    code: int | None
    grace_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """To the addon that has said `Drained`: its tapes are analysed."""

    kind: ClassVar = "released"


FromAddon: TypeAlias = Ready | FirstClient | Passed | Stopped | RecordingNews
ToAddon: TypeAlias = Log | LogEnd | PinAround | Parsed | StopTaping | Released | Hurry
AnyMessage: TypeAlias = FromAddon | ToAddon
_CODEC = MessageCodec[AnyMessage](
    *(Ready, FirstClient, Passed, Stopped),
    *(Taped, Ended, Closing, Refused, Said, Taping, Counted, Drained, Pinned),
    *(Log, LogEnd, PinAround, Parsed, StopTaping, Released, Hurry),
)


class AddonSocket(asyncio.Protocol):
    """One end of the socket.

    Args:
        on_message: called with each message from the other end.
        on_gone: called when the other end is gone.
    """

    def __init__(
        self, on_message: Callable[[AnyMessage], None], on_gone: Callable[[], None]
    ) -> None:
        self._on_message = on_message
        self._on_gone = on_gone
        self._transport: asyncio.Transport | None = None
        self._unsent: list[bytes] = []
        self._received = b""

    def send(self, message: AnyMessage) -> None:
        """Send a message; keep it until the socket is connected."""
        data = _CODEC.encode(message)
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
            self._on_message(_CODEC.decode(line))

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
