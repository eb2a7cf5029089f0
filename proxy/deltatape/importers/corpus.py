"""A folder that holds an exchange in files: `body.raw`, `request.json`, `response.json`.

`body.raw` is the response body, byte for byte; the other two are described in `envelope`, and may
be missing.
"""

from deltatape.importers._base import ImportSource
from deltatape.importers.envelope import read_request, read_response
from deltatape.importers.raw import from_parts
from deltatape.model.exchange import Exchange

BODY = "body.raw"
FILES = (BODY, "request.json", "response.json")
"""What is read of such a folder; only the first is needed."""


class CorpusImporter:
    """Imports a folder with a body."""

    name = "folder"

    def claims(self, material: ImportSource) -> bool:
        return BODY in material.files

    def read(self, material: ImportSource) -> Exchange:
        files = material.files
        asked = read_request(material.name, material.request or files.get("request.json"))
        answered = read_response(material.name, material.response or files.get("response.json"))
        return from_parts(material.name, asked, answered, files[BODY])
