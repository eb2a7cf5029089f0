"""Export a cassette as vcrpy writes it, so that tests can play it.

Format: https://vcrpy.readthedocs.io, version 1 in YAML. A body is text, or `!!binary` where it is
none, and has the content-coding that it had on the wire; the header fields are those of the wire,
too. vcrpy sorts them by their names.
"""

from collections.abc import Mapping, Sequence

from deltatape.diagnose.exchange_parts import shown, url_of
from deltatape.diagnose.rebuild import Analysis
from deltatape.exporters.parts import (
    body_as_sent,
    refuse_unanswered,
    request_as_sent,
    text_of,
)
from deltatape.importers.cassette import CassetteImporter
from deltatape.model.exchange import Exchange, Headers


class CassetteExporter:
    """Exports a cassette."""

    name = "vcr"
    title = "a cassette of vcrpy"
    holds = CassetteImporter.holds
    remark = "a masked part of a URL matches no request: use vcrpy's `filter_query_parameters`"
    is_folder = False

    def refuses(self, analysis: Analysis) -> str:
        return refuse_unanswered(analysis)

    def files(self, analyses: Sequence[Analysis], version: str) -> Mapping[str, bytes]:  # noqa: ARG002
        import yaml  # noqa: PLC0415 - few commands need it

        cassette = {
            "interactions": [_interaction(analysis.exchange) for analysis in analyses],
            "version": 1,
        }
        dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
        return {"": yaml.dump(cassette, Dumper=dumper).encode()}


def _interaction(exchange: Exchange) -> Mapping[str, object]:
    asked, sent = request_as_sent(exchange)
    headers, body = body_as_sent(exchange)
    response = exchange.response
    return {
        "request": {
            "method": exchange.request.method,
            "uri": url_of(exchange),
            "headers": _fields(asked),
            "body": _body(sent) if sent else None,
        },
        "response": {
            "status": {
                "code": response.status if response else 0,
                "message": text_of(response.reason) if response else "",
            },
            "headers": _fields(headers),
            "body": {"string": _body(body)},
        },
    }


def _fields(headers: Headers) -> Mapping[str, list[str]]:
    """Return the values by name, as it was spelled first."""
    fields: dict[str, list[str]] = {}
    spelled: dict[bytes, str] = {}
    for name, value in headers:
        key = spelled.setdefault(name.lower(), text_of(name))
        fields.setdefault(key, []).append(text_of(shown(value)))
    return fields


def _body(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data
