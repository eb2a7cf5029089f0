"""Import a cassette of vcrpy or of Ruby's VCR, as YAML or JSON: every interaction an exchange.

Formats: https://vcrpy.readthedocs.io (version 1, and what its stub of httpx wrote before vcrpy 6),
https://benoittgt.github.io/vcr ("http_interactions"). A body is there as text, as binary in
base64 (`!!binary`, Ruby's `!binary`), or as `base64_string`, with the content-coding that it had
unless the program was told to undo it. Interactions are in the order in which they were recorded.

The programs write their own name or version last: a cassette without that is torn.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, TypeAlias

from deltatape.diagnose.exchange_parts import HTTP_MESSAGES, Part
from deltatape.errors import UsageError
from deltatape.importers.parts import (
    ImportedRequest,
    ImportedResponse,
    ImportSource,
    PlainHeaders,
    build,
    field_lines,
)
from deltatape.importers.traffic import describe
from deltatape.model.exchange import Exchange
from deltatape.printable import excerpt
from deltatape.wire.framer import BYTE_ORDER_MARK
from deltatape.wire.json_value import parse

# Every command can import, and few are given YAML: loading its parser would slow all of them down.
if TYPE_CHECKING:
    import yaml

_YAML_START = re.compile(rb"^(?:http_)?interactions:", re.MULTILINE)
_JSON_START = re.compile(rb'\s*\{\s*"(?:version|interactions|http_interactions|recorded_with)"\s*:')
_JSON_KEY = re.compile(rb'"(?:http_)?interactions"\s*:')
_LAST = ("version", "recorded_with")
_DIGITS = 10
_STATUSES = range(100, 1000)

Object: TypeAlias = Mapping[object, object]


class CassetteImporter:
    """Imports a cassette of either program."""

    name = "a cassette"
    accepts = "a cassette of vcrpy or VCR"
    is_body = False
    holds = HTTP_MESSAGES | {Part.REASON, Part.CODED}
    remark = "of vcrpy and of Ruby's VCR, in YAML or JSON"

    def claims(self, source: ImportSource) -> bool:
        data = source.only or b""
        if b"\0" in data or b"request" not in data:
            return False
        if _JSON_START.match(data):
            return _JSON_KEY.search(data) is not None
        return _YAML_START.search(data) is not None

    def read(self, source: ImportSource) -> Sequence[Exchange]:
        """See `Importer.read`.

        Raises:
            UsageError: it is damaged, or lists no interactions.
        """
        loaded = _object(_loaded(source))
        listed = loaded.get("interactions", loaded.get("http_interactions"))
        if not isinstance(listed, list):
            raise UsageError(f"{source.name}: is a cassette without a list of interactions")
        if not any(key in loaded for key in _LAST):
            raise UsageError(
                f"{source.name}: is a cassette that is torn: its end has neither"
                " version nor recorded_with"
            )
        return [
            _exchange(
                source.name, _object(each), f"cassette: interaction {number} of {len(listed)}"
            )
            for number, each in enumerate(listed, 1)
        ]


_BINARY = frozenset({"tag:yaml.org,2002:binary", "!binary"})


def _value(events: "Iterator[yaml.Event]") -> object:
    """Return the first document's value from its events, without recursion and without any tag.

    A loader would recur as deep as a cassette says, and make objects as it says.
    """
    import yaml  # noqa: PLC0415 - see above

    root: list[object] = []
    anchors: dict[str | None, object] = {}
    open_: list[list[object]] = [root]
    maps: list[dict[object, object] | None] = [None]
    for event in takewhile(lambda event: not isinstance(event, yaml.DocumentEndEvent), events):
        if isinstance(event, yaml.CollectionEndEvent):
            items, pairs = open_.pop(), maps.pop()
            if pairs is not None:
                keys = (key if isinstance(key, str) else "" for key in items[::2])
                pairs.update(zip(keys, items[1::2], strict=False))
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        value: object
        if isinstance(event, yaml.AliasEvent):
            value = anchors.get(event.anchor)
        elif isinstance(event, yaml.ScalarEvent):
            value = _scalar(event)
        else:
            value = {} if isinstance(event, yaml.MappingStartEvent) else []
        open_[-1].append(value)
        if event.anchor is not None:
            anchors[event.anchor] = value
        if isinstance(value, dict) and not isinstance(event, yaml.AliasEvent):
            open_.append([])
            maps.append(value)
        elif isinstance(value, list) and not isinstance(event, yaml.AliasEvent):
            open_.append(value)
            maps.append(None)
    return root[0] if root else None


def _scalar(event: "yaml.ScalarEvent") -> object:
    text: str = event.value
    if event.tag in _BINARY:
        try:
            return base64.b64decode(text)
        except binascii.Error:
            return text
    if not event.style and event.tag is None:  # plain
        if text in {"", "~", "null"}:
            return None
        if text.isdecimal() and len(text) < _DIGITS:
            return int(text)
    return text


def _loaded(source: ImportSource) -> object:
    data = (source.only or b"").removeprefix(BYTE_ORDER_MARK)
    text = data.decode(errors="replace")
    if _JSON_START.match(data):
        found = parse(text)
        if found.error is not None:
            raise UsageError(f"{source.name}: is a cassette, but {describe(data)}")
        return found.value
    import yaml  # noqa: PLC0415 - see above

    # libyaml where it is there: cassettes have megabytes.
    parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _value(yaml.parse(text, parser))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" in line {mark.line + 1}" if mark else ""
        problem = f"torn or damaged{where}: {error.problem}"
    except yaml.YAMLError as error:
        problem = f"torn or damaged: {excerpt(str(error))}"
    raise UsageError(f"{source.name}: is a cassette, but {problem}")


def _exchange(name: str, interaction: Object, note: str) -> Exchange:
    notes = [note]
    asked, answer = _object(interaction.get("request")), _object(interaction.get("response"))
    request = ImportedRequest(
        method=_text(asked.get("method")).upper() or "POST",
        url=_text(asked.get("uri")),
        headers=tuple(_headers(asked.get("headers"))),
        body=_body(asked.get("body"), notes),
    )
    status = _object(answer.get("status"))
    code = status.get("code", answer.get("status_code"))
    if not isinstance(code, int) or code not in _STATUSES:
        return build(name, request, None, b"", [*notes, "cassette: it has no response"])
    headers: PlainHeaders = tuple(_headers(answer.get("headers")))
    reason = _text(status.get("message")).encode("utf-8", "replace")
    content = answer.get("body", answer.get("content"))
    body = _body(content, notes)
    return build(
        name, request, ImportedResponse(status=code, reason=reason, headers=headers), body, notes
    )


def _headers(value: object) -> Iterator[tuple[bytes, bytes]]:
    """Yield the fields: the values of a name are a list, or one."""
    for name, values in _object(value).items():
        for each in values if isinstance(values, list) else [values]:
            text = each.decode("latin-1") if isinstance(each, bytes) else str(each)
            for line in field_lines(text):
                if _text(name):
                    yield _text(name).encode("utf-8", "replace"), _text(line).encode("utf-8")


def _body(value: object, notes: list[str]) -> bytes:
    """Return a body: a value, or an object with it as `string` or `base64_string`."""
    if isinstance(value, dict):
        coded = value.get("base64_string")
        if isinstance(coded, str):
            try:
                return base64.b64decode(coded)
            except binascii.Error:
                notes.append("cassette: a body's base64 is damaged and was not decoded")
                return coded.encode("utf-8", "replace")
        value = value.get("string")
    if isinstance(value, bytes):
        return value
    if isinstance(value, list):  # of a body that was sent in pieces
        return b"".join(_body(each, notes) for each in value)
    return b"" if value is None else str(value).encode("utf-8", "replace")


def _object(value: object) -> Object:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) and value.isprintable() else ""
