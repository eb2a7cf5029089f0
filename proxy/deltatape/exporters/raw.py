"""Export bodies as they were sent, in the layout of folders that `import` reads.

One exchange is a folder with `body.raw`, `request.json`, `response.json`, and `request.raw`, the
body of the request, which JSON cannot always hold. Several exchanges are such folders in one, named
by their numbers.
"""

from collections.abc import Mapping, Sequence

from deltatape.diagnose.exchange_parts import shown, url_of
from deltatape.diagnose.rebuild import Analysis
from deltatape.exporters.parts import (
    body_as_sent,
    json_text,
    refuse_unanswered,
    request_as_sent,
    text_of,
)
from deltatape.importers.raw import FolderImporter
from deltatape.model.case_files import BODY, REQUEST, REQUEST_BODY, RESPONSE
from deltatape.model.exchange import Exchange, Headers


class RawExporter:
    """Exports raw bodies."""

    name = "raw"
    title = "raw bodies"
    holds = FolderImporter.holds
    remark = "the layout of folders that import reads; without -o, the one body goes to stdout"
    is_folder = True

    def refuses(self, analysis: Analysis) -> str:
        return refuse_unanswered(analysis)

    def files(self, analyses: Sequence[Analysis], version: str) -> Mapping[str, bytes]:  # noqa: ARG002
        several = len(analyses) > 1
        return {
            f"{place:04}/{name}" if several else name: data
            for place, analysis in enumerate(analyses, 1)
            for name, data in _case(analysis.exchange).items()
        }


def _case(exchange: Exchange) -> Mapping[str, bytes]:
    headers, body = body_as_sent(exchange)
    asked, sent = request_as_sent(exchange)
    request = {
        "method": exchange.request.method,
        "url": url_of(exchange),
        "headers": _fields(asked),
    }
    status = exchange.response.status if exchange.response else 0
    return {
        BODY: body,
        REQUEST_BODY: sent,
        REQUEST: json_text(request).encode(),
        RESPONSE: json_text({"status": status, "headers": _fields(headers)}).encode(),
    }


def _fields(headers: Headers) -> list[list[str]]:
    return [[text_of(name), text_of(shown(value))] for name, value in headers]
