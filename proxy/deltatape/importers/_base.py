"""Input and output of importers, and `build`, which makes an exchange of known parts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

from deltatape.model.exchange import (
    Exchange,
    Framing,
    Headers,
    Note,
    Read,
    Request,
    ResponseHead,
    Source,
    header,
)

PlainHeaders = tuple[tuple[bytes, bytes], ...]

_CODED = {b"gzip": b"\x1f\x8b", b"zstd": b"\x28\xb5\x2f\xfd"}
"""How bodies of a content-coding begin, where they begin with something certain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSource:
    """The files or bytes to import.

    `files` are the contents by name: one entry for a file, several for a folder. `request` and
    `response` describe the rest of the exchange, if the user named files for them; their form is
    that of `envelope`.
    """

    name: str
    """As the user gave it."""
    files: Mapping[str, bytes]
    request: bytes | None = None
    response: bytes | None = None

    @property
    def only(self) -> bytes | None:
        """Return the content, if there is exactly one file."""
        return next(iter(self.files.values())) if len(self.files) == 1 else None


class Importer(Protocol):
    """Reads one kind of material."""

    @property
    def name(self) -> str:
        """Return the kind: a word for messages."""

    def claims(self, material: ImportSource) -> bool:
        """Return whether to use this importer; earlier ones declined `material`."""

    def read(self, material: ImportSource) -> Exchange:
        """Return the exchange; called only for what `claims` accepts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRequest:
    """The known parts of a request."""

    method: str = "POST"
    url: str = ""
    http: str = "1.1"
    headers: PlainHeaders = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedResponse:
    """The known parts of a response without its body."""

    status: int = 200
    reason: bytes = b""
    http: str = "1.1"
    headers: PlainHeaders = field(default=())


def build(
    name: str,
    asked: ImportedRequest,
    answered: ImportedResponse,
    body: bytes,
    notes: Iterable[str] = (),
) -> Exchange:
    """Build an exchange of these parts: no times, one read, no ending.

    A response header that contradicts the body, because the body was decoded or edited before it
    was saved, is left out, and a note reports it.
    """
    headers, dropped = _fitting(answered.headers, body)
    framing = _framing(headers)
    ends = (len(body),) if framing is Framing.CHUNKED else None
    return Exchange(
        tape=name,
        number=1,
        id="",
        source=Source.IMPORT,
        recorded_at="",
        request=_request(asked),
        response=ResponseHead(
            status=answered.status,
            reason=answered.reason,
            http=answered.http,
            framing=framing,
            headers=headers,
            t_ns=0,
            line=None,
        ),
        reads=(Read(t_ns=0, data=body, boundaries=ends, line=None),) if body else (),
        notes=tuple(Note(t_ns=0, text=text) for text in (*notes, *dropped)),
    )


def _request(asked: ImportedRequest) -> Request:
    upstream, target = _split(asked.url)
    return Request(
        method=asked.method,
        target=(target.encode("utf-8", "surrogateescape"),),
        upstream=upstream,
        http=asked.http,
        headers=asked.headers,
        body=asked.body,
        t_ns=0,
        t_end_ns=0,
        line=None,
    )


def _split(url: str) -> tuple[str, str]:
    """Return base URL and target."""
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets that hold no address
        return "", url
    target = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
    return (f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""), target


def _fitting(headers: PlainHeaders, body: bytes) -> tuple[PlainHeaders, list[str]]:
    kept, dropped = [], []
    for name, value in headers:
        coding = _CODED.get(value.strip().lower())
        undone = name.lower() == b"content-encoding" and coding and not body.startswith(coding)
        edited = name.lower() == b"content-length" and value.strip() != b"%d" % len(body)
        if undone or edited:
            shown = f"{name.decode('latin-1')}: {value.decode('latin-1')}"
            dropped.append(f"left out {shown!a}: it contradicts the body of {len(body)} bytes")
        else:
            kept.append((name, value))
    return tuple(kept), dropped


def _framing(headers: Headers) -> Framing:
    coding = header(headers, "transfer-encoding") or b""
    if coding.strip().lower().endswith(b"chunked"):
        return Framing.CHUNKED
    return Framing.CLOSE if header(headers, "content-length") is None else Framing.LENGTH
