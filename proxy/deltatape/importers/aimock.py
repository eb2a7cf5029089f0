"""Import fixtures of aimock: every answer an exchange, of whose request nothing is known.

Format: https://aimock.copilotkit.dev/fixtures. A fixture has an answer, and conditions on requests
instead of one: those are told in a note, and the tape has no body of a request. Answers of other
kinds, such as images and audio, are left out.
"""

import re
from collections.abc import Sequence

from deltatape.diagnose.exchange_parts import Part
from deltatape.importers.messages import (
    Json,
    ReportedCall,
    as_json,
    chat_call,
    chat_message,
    exchanges_of,
    has_members,
    list_in,
    object_in,
    objects,
    objects_of,
    text_in,
)
from deltatape.importers.parts import ImportSource, elapsed_ns
from deltatape.model.exchange import Exchange
from deltatape.printable import excerpt

_MEMBERS = [re.compile(rb'"%b"\s*:' % name) for name in (b"fixtures", b"match", b"response")]
_ORIGIN = "aimock"


class AimockImporter:
    """Imports a file of fixtures."""

    name = "fixtures of aimock"
    accepts = "fixtures of aimock"
    is_body = False
    holds = frozenset({Part.REPLY})
    remark = "answers, and conditions on requests instead of requests"

    def claims(self, source: ImportSource) -> bool:
        return has_members(source, *_MEMBERS)

    def read(self, source: ImportSource) -> Sequence[Exchange]:
        """See `Importer.read`.

        Raises:
            UsageError: it is torn, or has no answer with text or calls.
        """
        values = objects_of(source, self.name)
        fixtures = [each for value in values for each in objects(list_in(value.get("fixtures")))]
        return exchanges_of(source, self.name, map(_call, fixtures), "answers with text or calls")


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
    timings = object_in(fixture.get("recordedTimings"))
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
        took_ns=elapsed_ns(0, timings.get("totalDurationMs")) // 1000,
        notes=[f"{_ORIGIN}: answers requests that match {excerpt(as_json(match), 200)}"],
    )
