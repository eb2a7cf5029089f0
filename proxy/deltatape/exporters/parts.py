"""What an exporter is, and what exporters share."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime  # noqa: TID251 - they read no clock
from typing import Protocol

from deltatape.diagnose.exchange_parts import Part
from deltatape.diagnose.rebuild import Analysis
from deltatape.model.exchange import Exchange, Headers, uncoded_headers, wall_time

_CI_COMMAND = re.compile(r"##(?=[A-Za-z]*\[)")


class Exporter(Protocol):
    """Writes exchanges in one format."""

    @property
    def name(self) -> str:
        """Return the word for `--format`."""

    @property
    def title(self) -> str:
        """Return the format's name, for messages: "an HTTP archive (HAR 1.2)"."""

    @property
    def holds(self) -> frozenset[Part]:
        """Return the parts of an exchange that an import of the file has again; see `IMPLIED`."""

    @property
    def remark(self) -> str:
        """Return what else users need to know, for docs/formats.md; "" for nothing."""

    @property
    def is_folder(self) -> bool:
        """Return whether it writes a folder of files, with the response's body in one of them."""

    def refuses(self, analysis: Analysis) -> str:
        """Return why an exchange is left out, as words after "an exchange"; "" if it is not."""

    def files(self, analyses: Sequence[Analysis], version: str) -> Mapping[str, bytes]:
        """Return the content of each file by its name; "" if the format is a single file.

        Args:
            analyses: the analyses of the exchanges, in their order.
            version: the version of the program that writes them.
        """


def moment(exchange: Exchange, t_ns: int) -> datetime:
    """Return a time of an exchange, to microseconds; one of 1970 where it is not known."""
    return wall_time(exchange.recorded_at, t_ns) or datetime(1970, 1, 1, tzinfo=UTC)


def time_of(exchange: Exchange, t_ns: int) -> str:
    """Return the same as RFC 3339."""
    written = moment(exchange, t_ns).isoformat(timespec="microseconds")
    return written.replace("+00:00", "Z")


def refuse_unanswered(analysis: Analysis) -> str:
    """Return why an exchange has no response with a body that a format needs; "" if it has."""
    if analysis.exchange.response is None:
        return "without a response"
    return refuse_socket(analysis)


def refuse_socket(analysis: Analysis) -> str:
    """Return why an exchange is none of one request and one response; "" if it is."""
    return "over a WebSocket" if analysis.exchange.upgraded else ""


def text_of(data: bytes) -> str:
    """Return the text of a header field's name or value."""
    return data.decode("utf-8", "replace")


def body_as_sent(exchange: Exchange) -> tuple[Headers, bytes]:
    """Return the response's header fields and body as they were sent.

    A body with a masked credential under its content-coding is decoded: the coded bytes still have
    the credential.
    """
    headers = exchange.response.headers if exchange.response else ()
    if not exchange.hidden:
        return headers, exchange.body
    content = exchange.content
    return uncoded_headers(headers, len(content)), content


def request_as_sent(exchange: Exchange) -> tuple[Headers, bytes]:
    """Return the same of the request."""
    request = exchange.request
    if request.hidden:
        request = request.with_content(request.content, request.content_masked)
    return request.headers, request.body


def json_text(value: object, indent: int | None = 1) -> str:
    """Return `value` as ASCII JSON that is inert on terminals and in CI logs, and a line feed."""
    text = json.dumps(value, ensure_ascii=True, indent=indent).replace("\x7f", "\\u007f")
    return _CI_COMMAND.sub(r"#\\u0023", text) + "\n"
