"""S013: an answer that was to be JSON, and is not, or does not fit its schema."""

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar, NamedTuple

from deltatape.model.asked import AnswerFormat
from deltatape.model.finding import Blame, Confidence, Excluded, Finding, Severity
from deltatape.model.reply import Channel, Choice
from deltatape.rules._base import Claim, RuleContext, finding
from deltatape.rules._ending import ended_well
from deltatape.rules._simple_schema import surely_allows
from deltatape.wire.json_value import parse

_ASSISTANT = frozenset({"assistant", "model"})
_STOPPED = "stop_sequence"
"""The finish reason of an answer that a stop sequence cut."""
_FENCE = re.compile(r"\A```[\w-]*\s*(.*?)\s*(?:```)?\Z", re.DOTALL)
_BREAKS = frozenset({"type", "required", "enum", "const", "additionalProperties", "anyOf", "oneOf"})
"""Keywords whose violation breaks code that reads the answer; limits of lengths mostly do not, and
the strict modes of some providers do not know them."""


class BrokenStructuredOutput:
    """The request asks for an answer in JSON, and the answer is none or violates the schema.

    ## What it does
    Reports answers that came to their regular end and are not the JSON that the request asks for
    (`response_format`, `text.format`, `responseMimeType`, `output_format`, Ollama's `format`), and
    those that violate its schema. It tells JSON in a Markdown fence, or with text around it, from
    what is no JSON.

    ## Why is this bad
    The client parses the answer and fails, or goes on with fields that are missing.

    ## Innocent explanations
    - The model refused, a limit, a filter or a stop sequence cut the answer, or it is an error.
    - The reply calls a tool instead; text beside calls is no answer.
    - The request began the answer itself (prefill): then the answer is its end only.
    - Without a strict mode the format is a wish: that is the model's, and no more than likely.

    ## Example
    ```
    "response_format": {"type": "json_object"}
    ...
    text:  Here is the JSON: {"city": "Gent"}
    ```

    ## Fix
    Validate the answer, and ask again with the error. Use the provider's strict mode with a schema
    where there is one; some models put JSON into a Markdown fence without it.

    ## References
    - https://platform.openai.com/docs/guides/structured-outputs
    - https://ai.google.dev/gemini-api/docs/structured-output
    - https://ollama.com/blog/structured-outputs
    - https://github.com/langgenius/dify/issues/31966
    - https://github.com/jundot/omlx/issues/613
    """

    code: ClassVar[str] = "S013"
    name: ClassVar[str] = "broken-structured-output"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        wanted = context.asked.answer
        if wanted is None or context.reply.from_app or _is_prefilled(context):
            return
        for choice in context.reply.choices:
            broken = _broken(context, choice, wanted) if _is_answer(context, choice) else None
            if broken is not None:
                yield self._finding(context, choice, wanted, broken)

    def _finding(
        self, context: RuleContext, choice: Choice, wanted: AnswerFormat, broken: "_Broken"
    ) -> Finding:
        last = [piece for piece in choice.pieces if piece.channel is Channel.TEXT][-1].carrier
        strict = Excluded(
            "the format is a wish that the model need not obey",
            "the interface promises it: a strict mode, or a grammar",
        )
        ended = Excluded("the answer was cut", "it came to its regular end")
        claim = Claim(
            message=f"the request asks for an answer in JSON, and {broken.how}",
            hint="validate the answer and ask again with the error; use a strict mode, if there is"
            " one",
            blame=Blame.UPSTREAM if wanted.promised else Blame.MODEL,
            confidence=Confidence.LIKELY,
            severity=broken.severity,
            event=last.number,
            place=last.place,
            evidence=choice.text,
            excluded=(ended, strict) if wanted.promised else (ended,),
        )
        return finding(self, context, claim)


class _Broken(NamedTuple):
    """What is wrong with an answer."""

    how: str
    severity: Severity


def _is_prefilled(context: RuleContext) -> bool:
    history = context.asked.history
    return bool(history) and history[-1].role in _ASSISTANT


def _is_answer(context: RuleContext, choice: Choice) -> bool:
    """Whether the text is the whole answer; an empty one is D002's business."""
    if not choice.text.strip() or choice.tool_calls or choice.server_calls:
        return False
    return choice.finish_reason_raw != _STOPPED and ended_well(context, choice)


def _broken(context: RuleContext, choice: Choice, wanted: AnswerFormat) -> _Broken | None:
    text = choice.text.strip()
    parsed = parse(text)
    if parsed.error is None:
        return _violation(context, wanted.schema, parsed.value, len(text))
    if choice.text_calls:
        return None
    readable = Severity.ERROR if wanted.promised else Severity.WARNING
    fenced = _FENCE.match(text)
    if fenced and parse(fenced[1]).error is None:
        return _Broken("the JSON stands in a Markdown fence", readable)
    if _holds_object(text):
        return _Broken("other text stands around the JSON", readable)
    return _Broken(f"the text is no JSON: {parsed.error}", Severity.ERROR)


def _holds_object(text: str) -> bool:
    """Whether a whole object stands between the first brace and the last."""
    start, end = text.find("{"), text.rfind("}")
    return 0 <= start < end and parse(text[start : end + 1]).error is None


def _violation(
    context: RuleContext, schema: Mapping[str, object] | None, value: object, size: int
) -> _Broken | None:
    settings = context.settings
    if schema is None or size > settings.schema_characters:
        return None
    if surely_allows(schema, value, size, settings):
        return None
    from deltatape.rules._schema import validate  # noqa: PLC0415 - takes long, seldom used

    violations = validate(schema, value, settings).violations
    if not violations:
        return None
    wrong = "; ".join(f"{each.path}: {each.message[:200]}" for each in violations)
    breaks = any(each.keyword in _BREAKS for each in violations)
    return _Broken(
        f"it violates the schema: {wrong}", Severity.ERROR if breaks else Severity.WARNING
    )
