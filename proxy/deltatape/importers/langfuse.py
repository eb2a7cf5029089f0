"""Import what Langfuse exports of its observations: every generation an exchange, in messages.

Formats: https://api.reference.langfuse.com: an answer of `/api/public/observations` (`data`), a
trace with its `observations`, and exports of observations as an array or one a line, in which
input and output may be JSON in texts. Only generations are calls of a model. What was traced
by hand has an input and an output of any form: those that are no messages are left out.
"""

import re
from collections.abc import Sequence

from deltatape.diagnose.exchange_parts import MESSAGES
from deltatape.importers.messages import (
    Json,
    ReportedCall,
    chat_message,
    exchanges_of,
    has_members,
    json_in,
    list_in,
    object_in,
    objects,
    objects_of,
    text_in,
)
from deltatape.importers.parts import ImportSource, elapsed_ns, seconds_of
from deltatape.model.exchange import Exchange

_TYPE = re.compile(rb'"type"\s*:\s*"GENERATION"', re.IGNORECASE)
_TRACE = re.compile(rb'"trace_?id"', re.IGNORECASE)
_ORIGIN = "Langfuse"


class LangfuseImporter:
    """Imports observations of Langfuse."""

    name = "observations of Langfuse"
    accepts = "observations that Langfuse exports, as JSON"
    is_body = False
    holds = MESSAGES
    remark = "generations whose input and output are messages: what an SDK made of them"

    def claims(self, source: ImportSource) -> bool:
        return has_members(source, _TYPE, _TRACE)

    def read(self, source: ImportSource) -> Sequence[Exchange]:
        """See `Importer.read`.

        Raises:
            UsageError: it is torn, or has no generation with messages.
        """
        values = objects_of(source, self.name)
        observations = [each for value in values for each in _observations(value)]
        calls = map(langfuse_call, observations)
        return exchanges_of(source, self.name, calls, "is a generation with messages")


def _observations(value: Json) -> Sequence[Json]:
    for key in ("observations", "data"):
        if key in value:
            return objects(list_in(value[key]))
    return [value]


def langfuse_call(observation: Json) -> ReportedCall | None:
    """Return the call that an observation is; None if it is none, or has no messages."""
    if text_in(observation.get("type")).upper() != "GENERATION":
        return None
    asked, tools = _input(json_in(observation.get("input")))
    choices = _output(json_in(observation.get("output")))
    error = ""
    if observation.get("level") == "ERROR":
        error = text_in(observation.get("statusMessage", observation.get("status_message")))
    if asked is None and not choices:
        return None
    began_s = seconds_of(observation.get("startTime", observation.get("start_time")))
    ended_s = seconds_of(observation.get("endTime", observation.get("end_time")))
    return ReportedCall(
        origin=_ORIGIN,
        messages=asked,
        choices=choices,
        tools=tools,
        model=text_in(observation.get("model")),
        error=error,
        began_s=began_s,
        took_ns=elapsed_ns(began_s, ended_s),
    )


def _input(value: object) -> tuple[Sequence[Json] | None, Sequence[object]]:
    """Return the messages and the tools; no messages if it has none."""
    if isinstance(value, dict):
        messages, tools = value.get("messages"), list_in(value.get("tools"))
    else:
        messages, tools = value, ()
    listed = list_in(messages)
    if not listed or not all(isinstance(each, dict) and "role" in each for each in listed):
        return None, ()
    return objects(listed), tools


def _output(value: object) -> list[tuple[Json, str | None]]:
    """Return the answers: texts, messages, or whole responses."""
    if isinstance(value, str):
        return [(chat_message("assistant", value), None)] if value else []
    if isinstance(value, list):
        return [each for one in value for each in _output(one)]
    found = object_in(value)
    if "choices" in found:
        return [
            (object_in(each.get("message")), text_in(each.get("finish_reason")) or None)
            for each in objects(list_in(found["choices"]))
        ]
    if found.get("role") in ("assistant", "model") or "tool_calls" in found:
        return [({"content": None, **found, "role": "assistant"}, None)]
    return []
