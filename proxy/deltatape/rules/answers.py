"""Rules about the answer as a whole: its model, its token counts and its format."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import combinations, takewhile
from typing import NamedTuple

from deltatape.model.finding import Blame, Confidence, Excluded, Severity
from deltatape.model.reply import Channel, Choice, TextFragment
from deltatape.model.request_summary import AnswerFormat
from deltatape.printable import excerpt
from deltatape.rules.context import Claim, RuleContext
from deltatape.rules.endings import ended_well
from deltatape.rules.rule import exchange_rule
from deltatape.wire.json_value import parse

_FAMILIES = (
    ("gpt", r"gpt-|chatgpt-"),
    ("o-series", r"o[1-9](?:-|\Z)"),
    *((name, name) for name in ("claude", "gemini", "gemma", "deepseek", "llama", "qwen", "grok")),
    *((name, name) for name in ("kimi", "glm-", "command", "codestral", "mixtral", "ministral")),
    ("mistral", r"mistral-|open-mistral-"),
)
"""By model family, the prefixes of its models' names."""
_FAMILY = [(name, re.compile(pattern)) for name, pattern in _FAMILIES]
_TIERS = frozenset(
    {"mini", "nano", "pro", "flash", "lite", "haiku", "sonnet", "opus", "small", "medium", "large"}
)
"""Words that tell models of one family apart; others are left out of the names of versions."""
_BARE_TIER = frozenset({"gpt", "o-series"})
"""Families whose models without such a word are a separate tier."""
_DATE = re.compile(r"[-_@]?(?:20\d\d-?[01]\d-?[0-3]\d|\d{2}-20\d\d)")
_SIZE = re.compile(r"(?<![\w.])\d+(?:\.\d+)?b(?![a-z])")
_VERSION = {
    "gpt": re.compile(r"gpt-(3\.5|35|\d(?:\.\d)?o?)(?![\d.])"),
    "o-series": re.compile(r"o(\d)"),
    "claude": re.compile(r"(?<!\d)(\d)(?:[-.](\d))?(?!\d)"),
    "gemini": re.compile(r"(?<!\d)(\d)(?:\.(\d))?(?!\d)"),
}
_FALLBACKS = (b'"models"', b'"fallbacks"', b'"fallback')
"""Members by which a request allows other models."""
_DEPLOYMENTS = ("azure", "/deployments/")
"""Providers at which owners choose the names of their models."""


@exchange_rule("S011", "other-model", Severity.WARNING)
def other_model(context: RuleContext) -> Iterator[Claim]:
    """Report an answer from a different model than was requested."""
    asked, answered = context.request.model, context.reply.model
    if not asked or not answered or context.reply.from_app:
        return
    how = _difference(asked, answered)
    if how is None or _may_be_another(context):
        return
    yield Claim(
        message=(
            f"the request asks for {excerpt(asked, 80)!r}, but"
            f" {excerpt(answered, 80)!r} answered: {how}"
        ),
        hint="check the model aliases and fallbacks of the gateway",
        blame=Blame.UPSTREAM,
        confidence=Confidence.POSSIBLE,
        at=context.stream.events[0],
        evidence=f"model: {answered}",
    )


class _Model(NamedTuple):
    """The parts of a model's name."""

    family: str
    tiers: frozenset[str]
    size: str | None
    version: tuple[str, ...]


def _may_be_another(context: RuleContext) -> bool:
    """Return whether the request allows another model, or uses names that its owner invented."""
    request = context.exchange.request
    if any(word in request.content for word in _FALLBACKS):
        return True
    return any(word in request.upstream or word in request.path for word in _DEPLOYMENTS)


def _difference(asked: str, answered: str) -> str | None:
    """Describe how the models differ; None if they may be the same, or one is unknown."""
    one, other = _read(asked), _read(answered)
    if one is None or other is None:
        return None
    if one.family != other.family:
        return "a different model family"
    if one.tiers != other.tiers and (one.family in _BARE_TIER or (one.tiers and other.tiers)):
        return "a different tier of the family"
    if one.size and other.size and one.size != other.size:
        return "a different size of the family"
    if any(mine != theirs for mine, theirs in zip(one.version, other.version, strict=False)):
        return "a different version"
    return None


@lru_cache(maxsize=256)
def _read(name: str) -> _Model | None:
    bare = name.lower().rpartition("/")[2].partition(":")[0]
    family, start = _family(bare)
    if family is None:
        return None
    bare = _DATE.sub("", bare[start:])
    found = _VERSION[family].search(bare) if family in _VERSION else None
    size = _SIZE.search(bare)
    return _Model(
        family=family,
        tiers=_TIERS.intersection(re.split(r"[-_.@ ]", bare)),
        size=size[0] if size else None,
        version=_version(found),
    )


def _family(bare: str) -> tuple[str | None, int]:
    """Return the model family, and where the model's own name begins after the provider's."""
    dot = bare.rfind(".", 0, 24)
    for start in (0, *(at + 1 for at, sign in enumerate(bare[: dot + 1]) if sign == ".")):
        for family, pattern in _FAMILY:
            if pattern.match(bare, start):
                return family, start
    return None, 0


def _version(found: re.Match[str] | None) -> tuple[str, ...]:
    if found is None:
        return ()
    parts = [part for part in found.groups() if part is not None]
    return tuple("3.5" if part == "35" else part for part in parts)


class TokenCounts(NamedTuple):
    """The token counts of a request; None where one is not reported."""

    prompt: int
    answer: int | None
    total: int | None
    cached: int
    """Cached tokens of the prompt; 0 if the API does not count them as a part of it."""


_COUNT_NAMES = (
    ("prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details"),
    ("input_tokens", "output_tokens", "total_tokens", "input_tokens_details"),
    ("promptTokenCount", "candidatesTokenCount", "totalTokenCount", ""),
    ("inputTokens", "outputTokens", "totalTokens", ""),
    ("total_input_tokens", "total_output_tokens", "total_tokens", ""),
)
"""Names of the counts of prompt, answer and both, and of the object with the cached tokens."""
_KNOWN_COUNTS = frozenset(name for names in _COUNT_NAMES for name in names[:3])
_GEMINI_CACHED = "cachedContentTokenCount"
_MOST_COUNTS = 12
"""Further counts that are summed."""


def counts_in(usage: Mapping[str, object]) -> TokenCounts | None:
    """Return the counts in `usage`; None if it does not report prompt tokens."""
    for prompt, answer, total, details in _COUNT_NAMES:
        found = usage.get(prompt)
        if type(found) is int:
            inner = usage.get(details)
            cached = inner.get("cached_tokens") if isinstance(inner, dict) else None
            if cached is None:
                cached = usage.get(_GEMINI_CACHED)
            return TokenCounts(
                found,
                _count(usage.get(answer)),
                _count(usage.get(total)),
                _count(cached) or 0,
            )
    return None


def _is_explained(difference: int, usage: Mapping[str, object]) -> bool:
    """Return whether other counts in `usage` add up to the difference."""
    inner = [value for value in usage.values() if isinstance(value, dict)]
    holders = ({key: value for key, value in usage.items() if key not in _KNOWN_COUNTS}, *inner)
    counts = [_count(value) or 0 for holder in holders for value in holder.values()]
    parts = [count for count in counts if count > 0][:_MOST_COUNTS]
    sums = (sum(some) for size in range(1, 4) for some in combinations(parts, size))
    return any(each == difference for each in sums)


def _count(value: object) -> int | None:
    return value if type(value) is int else None


@exchange_rule("S012", "impossible-usage", Severity.WARNING, at_end=True)
def impossible_usage(context: RuleContext) -> Iterator[Claim]:
    """Report impossible token counts."""
    usage = context.reply.usage
    counts = counts_in(usage) if usage else None
    if not usage or not counts or not context.reply.terminated or context.exchange.cut:
        return
    wrong = _contradiction(counts, usage) or _nothing_counted(context, counts)
    if wrong is None:
        return
    yield Claim(
        message=f"impossible token usage: {wrong.how}",
        hint="do not compute budgets from this usage; report it to the gateway or the provider",
        blame=Blame.UPSTREAM,
        confidence=wrong.confidence,
        severity=wrong.severity,
        at=context.last,
        evidence=", ".join(f"{key}: {value}" for key, value in usage.items()),
    )


class _Wrong(NamedTuple):
    how: str
    severity: Severity = Severity.WARNING
    confidence: Confidence = Confidence.LIKELY


def _contradiction(counts: TokenCounts, usage: Mapping[str, object]) -> _Wrong | None:
    """Return the contradiction in the counts; None if there is none."""
    prompt, answer, total, cached = counts
    for name, count in zip(TokenCounts._fields, counts, strict=True):
        if count is not None and count < 0:
            what = "cached tokens" if name == "cached" else name
            return _Wrong(f"{what} count is {count}")
    if cached > prompt:
        return _Wrong(f"{cached} cached tokens exceed the {prompt} prompt tokens")
    if answer is None or total is None or total == prompt + answer:
        return None
    mismatch = f"the total is {total}, but prompt and answer are {prompt} and {answer}"
    if total < max(prompt, answer):
        return _Wrong(mismatch)
    explained = _is_explained(abs(total - prompt - answer), usage)
    return None if explained else _Wrong(mismatch, Severity.INFO, Confidence.POSSIBLE)


def _nothing_counted(context: RuleContext, counts: TokenCounts) -> _Wrong | None:
    """Detect content with an answer count of 0, unless the prompt count is 0, too."""
    content = any(choice.text or choice.tool_calls for choice in context.reply.choices)
    if counts.answer != 0 or not counts.prompt or not content:
        return None
    return _Wrong(
        "the answer has content, but its token count is 0", Severity.INFO, Confidence.POSSIBLE
    )


_ASSISTANT = frozenset({"assistant", "model"})
_STOPPED = "stop_sequence"
"""The finish reason of an answer that a stop sequence cut."""
_FENCE = re.compile(r"\A```[\w-]*\s*(.*?)\s*(?:```)?\Z", re.DOTALL)
_BREAKS = frozenset({"type", "required", "enum", "const", "additionalProperties", "anyOf", "oneOf"})
"""Keywords whose violation breaks code that reads the answer; limits of lengths mostly do not, and
the strict modes of some providers do not know them."""


@exchange_rule("S013", "broken-structured-output", Severity.ERROR, at_end=True)
def broken_structured_output(context: RuleContext) -> Iterator[Claim]:
    """Report an answer that should be JSON and is not, or does not fit its schema."""
    wanted = context.request.answer
    if wanted is None or context.reply.from_app or _is_prefilled(context):
        return
    for choice in context.reply.choices:
        broken = _broken(context, choice, wanted) if _is_answer(context, choice) else None
        if broken is not None:
            yield _broken_claim(choice, wanted, broken)


def _broken_claim(choice: Choice, wanted: AnswerFormat, broken: "_Broken") -> Claim:
    last = [piece for piece in choice.pieces if piece.channel is Channel.TEXT][-1].carrier
    strict = Excluded(
        "JSON output is best effort here: the model need not obey",
        "the API guarantees the format: a strict mode, or a grammar",
    )
    ended = Excluded("the answer was cut", "it ended normally")
    return Claim(
        message=f"the request asks for a JSON answer, but {broken.how}",
        hint="validate the answer and ask again with the error; use a strict mode if there is one",
        blame=Blame.UPSTREAM if wanted.promised else Blame.MODEL,
        confidence=Confidence.LIKELY,
        severity=broken.severity,
        at=last,
        evidence=choice.text,
        excluded=(ended, strict) if wanted.promised else (ended,),
    )


class _Broken(NamedTuple):
    """A defect of a structured answer."""

    how: str
    severity: Severity


def _is_prefilled(context: RuleContext) -> bool:
    history = context.request.history
    return bool(history) and history[-1].role in _ASSISTANT


def _is_answer(context: RuleContext, choice: Choice) -> bool:
    """Return whether the text is the complete answer; D002 reports empty ones."""
    if not choice.text.strip() or choice.tool_calls or choice.server_calls:
        return False
    return choice.finish_reason_raw != _STOPPED and ended_well(context, choice)


def _broken(context: RuleContext, choice: Choice, wanted: AnswerFormat) -> _Broken | None:
    text = _last_message(choice).strip()
    parsed = parse(text)
    if parsed.error is None:
        return _violation(context, wanted.schema, parsed.value, len(text))
    if choice.text_calls:
        return None
    readable = Severity.ERROR if wanted.promised else Severity.WARNING
    fenced = _FENCE.match(text)
    if fenced and parse(fenced[1]).error is None:
        return _Broken("the JSON is inside a Markdown fence", readable)
    if _holds_object(text):
        return _Broken("there is other text around the JSON", readable)
    return _Broken(f"the text is not JSON: {parsed.error}", Severity.ERROR)


def _last_message(choice: Choice) -> str:
    """Return the text of the last message: a preamble may be one of its own before it."""
    pieces = [piece for piece in choice.pieces if piece.channel is Channel.TEXT]
    last = _event(pieces[-1])
    response = last.get("response", last)
    if isinstance(response, dict) and "output" in response:
        return pieces[-1].text  # where an event lists all messages, each is one piece
    place = last.get("output_index")
    own = takewhile(lambda piece: _event(piece).get("output_index") == place, reversed(pieces))
    return choice.text if place is None else "".join([piece.text for piece in own][::-1])


def _event(piece: TextFragment) -> Mapping[str, object]:
    value = parse(piece.carrier.data).value
    return value if isinstance(value, dict) else {}


def _holds_object(text: str) -> bool:
    """Return whether the text between the first brace and the last is a complete object."""
    start, end = text.find("{"), text.rfind("}")
    return 0 <= start < end and parse(text[start : end + 1]).error is None


def _violation(
    context: RuleContext, schema: Mapping[str, object] | None, value: object, size: int
) -> _Broken | None:
    settings = context.settings
    if schema is None or size > settings.schema_characters:
        return None
    from deltatape.rules._schema import validate  # noqa: PLC0415 - takes long, and few tapes need it

    violations = validate(schema, value, settings).violations
    if not violations:
        return None
    wrong = "; ".join(f"{each.path}: {each.message[:200]}" for each in violations)
    breaks = any(each.keyword in _BREAKS for each in violations)
    return _Broken(
        f"the answer violates the schema: {wrong}", Severity.ERROR if breaks else Severity.WARNING
    )
