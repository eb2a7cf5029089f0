"""Import a response body as it is: SSE text, NDJSON, JSON, or an AWS event stream.

It is one file, or `body.raw` in a folder with `request.json` and `response.json` (see `parts`), and
`request.raw`, the body of the request; any of them may be missing. Nothing in a body is changed.
"""

from collections.abc import Sequence
from dataclasses import replace

from deltatape.diagnose.exchange_parts import HTTP_MESSAGES, Part
from deltatape.importers.parts import ImportSource, build, read_request, read_response
from deltatape.model.case_files import BODY, REQUEST, REQUEST_BODY, RESPONSE
from deltatape.model.exchange import Exchange


class RawImporter:
    """Imports any single file."""

    name = "a response body"
    accepts = "a response body as it was sent (server-sent events, NDJSON, JSON)"
    is_body = True
    holds = frozenset({Part.BODY})
    remark = "`--request` and `--response` describe the rest"

    def claims(self, source: ImportSource) -> bool:
        return source.only is not None

    def read(self, source: ImportSource) -> Sequence[Exchange]:
        request = read_request(source.request_name, source.request)
        response = read_response(source.response_name, source.response)
        return [build(source.name, request, response, source.only or b"")]


class FolderImporter:
    """Imports a folder with a body."""

    name = "a folder"
    accepts = "a folder with body.raw"
    is_body = True
    holds = HTTP_MESSAGES | {Part.FIELD_ORDER, Part.CODED}
    remark = "body.raw, request.json, response.json, request.raw"

    def claims(self, source: ImportSource) -> bool:
        return BODY in source.files

    def read(self, source: ImportSource) -> Sequence[Exchange]:
        files = source.files
        request_name, request_data = source.request_name, source.request
        if request_data is None:
            request_name, request_data = f"{source.name}/{REQUEST}", files.get(REQUEST)
        response_name, response_data = source.response_name, source.response
        if response_data is None:
            response_name, response_data = f"{source.name}/{RESPONSE}", files.get(RESPONSE)
        request = read_request(request_name, request_data)
        response = read_response(response_name, response_data)
        if source.request is None and REQUEST_BODY in files:
            request = replace(request, body=files[REQUEST_BODY])
        return [build(source.name, request, response, files[BODY])]
