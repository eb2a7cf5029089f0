"""Import fixtures of aimock: every answer an exchange, of whose request nothing is known.

Format: https://aimock.copilotkit.dev/fixtures. A fixture has an answer, and conditions on requests
instead of one: those are told in a note, and the tape has no body of a request. Answers of other
kinds, such as images and audio, are left out.
"""

import re
from collections.abc import Sequence

from deltatape.diagnose.exchange_parts import Part
from deltatape.errors import UsageError
from deltatape.importers.messages import (
    Json,
    ReportedCall,
    as_json,
    chat_call,
    chat_message,
    list_in,
    object_in,
    objects,
    reported,
    text_in,
    values_in,
)
from deltatape.importers.parts import ImportSource
from deltatape.importers.traffic import describe
from deltatape.model.exchange import Exchange
from deltatape.printable import excerpt
from deltatape.wire.framer import BYTE_ORDER_MARK

_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{")
_KEYS = (b'"fixtures"', b'"match"', b'"response"')
_ORIGIN = "aimock"


class AimockImporter:
    """Imports a file of fixtures."""

    name = "fixtures of aimock"
    accepts = "fixtures of aimock"
    is_body = False
    holds = frozenset({Part.REPLY})
    remark = "answers, and conditions on requests instead of requests"

    def claims(self, source: ImportSource) -> bool:
        data = source.only or b""
        return _START.match(data) is not None and all(key in data for key in _KEYS)

    def read(self, source: ImportSource) -> Sequence[Exchange]:
        """See `Importer.read`.

        Raises:
            UsageError: it is torn, or has no answer with text or calls.
        """
        data = (source.only or b"").removeprefix(BYTE_ORDER_MARK)
        values = values_in(data)
        if values is None:
            raise UsageError(f"{source.name}: is {self.name}, but {describe(data)}")
        fixtures = [each for value in values for each in objects(list_in(value.get("fixtures")))]
        calls = [call for each in fixtures if (call := _call(each)) is not None]
        if not calls:
            raise UsageError(
                f"{source.name}: is {self.name}, none of which answers with text or calls"
            )
        return [reported(source.name, call) for call in calls]


def _call(fixture: Json) -> ReportedCall | None:
    response, match = object_in(fixture.get("response")), object_in(fixture.get("match"))
    texts, calls = [], []
    blocks = objects(list_in(response.get("blocks")))
    for block in blocks:
        if block.get("type") == "text":
            texts.append(text_in(block.get("text")))
        elif block.get("type") == "toolCall":
            calls.append(chat_call(block.get("id"), block.get("name"), block.get("arguments")))
    if not blocks:
        content = response.get("content")
        if content is not None:
            texts.append(content if isinstance(content, str) else as_json(content))
        calls = [
            chat_call(each.get("id"), each.get("name"), each.get("arguments"))
            for each in objects(list_in(response.get("toolCalls")))
        ]
    error = text_in(object_in(response.get("error")).get("message"))
    if not texts and not calls and not error:
        return None
    message = chat_message(
        "assistant", "".join(texts) if texts else None, calls, text_in(response.get("reasoning"))
    )
    return ReportedCall(
        origin=_ORIGIN,
        messages=None,
        choices=[(message, text_in(response.get("finishReason")) or None)] if not error else [],
        model=text_in(response.get("model")) or text_in(match.get("model")),
        ident=text_in(response.get("id")),
        error=error,
        notes=[f"{_ORIGIN}: answers requests that match {excerpt(as_json(match), 200)}"],
    )
