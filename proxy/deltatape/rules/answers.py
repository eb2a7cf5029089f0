"""Rules about the answer as a whole: its model, token counts, format and text."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from deltatape.model.finding import Blame, Confidence, Excluded, Severity
from deltatape.model.reply import Channel, Choice, TextFragment
from deltatape.model.request_summary import AnswerFormat
from deltatape.model.stream import AnomalyKind
from deltatape.printable import excerpt
from deltatape.rules._schema import validate
from deltatape.rules._stray_text import StrayToken, error_page, mojibake, replaced, stray_tokens
from deltatape.rules._usage import TokenCounts, counts_in, is_explained
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
"""By name of a family, how the names of its models begin."""
_FAMILY = [(name, re.compile(pattern)) for name, pattern in _FAMILIES]
_TIERS = frozenset(
    {"mini", "nano", "pro", "flash", "lite", "haiku", "sonnet", "opus", "small", "medium", "large"}
)
"""Words that tell models of one family apart; others are left out of the names of versions."""
_BARE_TIER = frozenset({"gpt", "o-series"})
"""Families whose models without such a word are a tier of their own."""
_DATE = re.compile(r"[-_@]?(?:20\d\d-?[01]\d-?[0-3]\d|\d{2}-20\d\d)")
_SIZE = re.compile(r"(?<![\w.])\d+(?:\.\d+)?b(?![a-z])")
_VERSION = {
    "gpt": re.compile(r"gpt-(3\.5|35|\d(?:\.\d)?o?)(?![\d.])"),
    "o-series": re.compile(r"o(\d)"),
    "claude": re.compile(r"(?<!\d)(\d)(?:[-.](\d))?(?!\d)"),
    "gemini": re.compile(r"(?<!\d)(\d)(?:\.(\d))?(?!\d)"),
}
_FALLBACKS = (b'"models"', b'"fallbacks"', b'"fallback')
"""With which a request itself allows other models."""
_DEPLOYMENTS = ("azure", "/deployments/")
"""Where a model is called as its owner likes."""


@exchange_rule("S011", "other-model", Severity.WARNING)
def other_model(context: RuleContext) -> Iterator[Claim]:
    """Report an answer from a different model than was requested."""
    asked, answered = context.request.model, context.reply.model
    if not asked or not answered or context.reply.from_app:
        return
    how = _difference(asked, answered)
    if how is None or _may_be_another(context):
        return
    first = context.stream.events[0]
    yield Claim(
        message=(
            f"the request asks for {excerpt(asked, 80)!r}, but"
            f" {excerpt(answered, 80)!r} answered: {how}"
        ),
        hint="check the model aliases and fallbacks of the gateway",
        blame=Blame.UPSTREAM,
        confidence=Confidence.POSSIBLE,
        event=first.number,
        place=first.place,
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
    if any(word in request.body for word in _FALLBACKS):
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


@exchange_rule("S012", "impossible-usage", Severity.WARNING, at_end=True)
def impossible_usage(context: RuleContext) -> Iterator[Claim]:
    """Report impossible token counts."""
    usage = context.reply.usage
    counts = counts_in(usage) if usage else None
    if not usage or not counts or not context.reply.terminated or context.exchange.cut:
        return
    wrong = _wrong(counts, usage) or _nothing_counted(context, counts)
    if wrong is None:
        return
    last = context.stream.events[-1]
    yield Claim(
        message=f"impossible token usage: {wrong.how}",
        hint="do not compute budgets from this usage; report it to the gateway or the provider",
        blame=Blame.UPSTREAM,
        confidence=wrong.confidence,
        severity=wrong.severity,
        event=last.number,
        place=last.place,
        evidence=", ".join(f"{key}: {value}" for key, value in usage.items()),
    )


class _Wrong(NamedTuple):
    how: str
    severity: Severity = Severity.WARNING
    confidence: Confidence = Confidence.LIKELY


def _wrong(counts: TokenCounts, usage: Mapping[str, object]) -> _Wrong | None:
    """Return the contradiction in the counts; None if there is none."""
    prompt, answer, total, cached = counts
    for name, count in zip(TokenCounts._fields, counts, strict=True):
        if count is not None and count < 0:
            return _Wrong(f"{_WORDS.get(name, name)} count is {count}")
    if cached > prompt:
        return _Wrong(f"{cached} cached tokens exceed the {prompt} prompt tokens")
    if answer is None or total is None or total == prompt + answer:
        return None
    told = f"the total is {total}, but prompt and answer are {prompt} and {answer}"
    if total < max(prompt, answer):
        return _Wrong(told)
    explained = is_explained(abs(total - prompt - answer), usage)
    return None if explained else _Wrong(told, Severity.INFO, Confidence.POSSIBLE)


_WORDS = {"cached": "cached tokens"}


def _nothing_counted(context: RuleContext, counts: TokenCounts) -> _Wrong | None:
    """Detect content with an answer count of 0, unless the prompt count is 0, too."""
    said = any(choice.text or choice.tool_calls for choice in context.reply.choices)
    if counts.answer != 0 or not counts.prompt or not said:
        return None
    told = "the answer has content, but its token count is 0"
    return _Wrong(told, Severity.INFO, Confidence.POSSIBLE)


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
        event=last.number,
        place=last.place,
        evidence=choice.text,
        excluded=(ended, strict) if wanted.promised else (ended,),
    )


class _Broken(NamedTuple):
    """What is wrong with a structured answer."""

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
    text = choice.text.strip()
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
    violations = validate(schema, value, settings).violations
    if not violations:
        return None
    wrong = "; ".join(f"{each.path}: {each.message[:200]}" for each in violations)
    breaks = any(each.keyword in _BREAKS for each in violations)
    return _Broken(
        f"the answer violates the schema: {wrong}", Severity.ERROR if breaks else Severity.WARNING
    )


_AROUND = 40
"""Characters before and after what is found that are shown."""
_ABOUT_TOKENS = (
    "special token",
    "stop token",
    "end token",
    "end-of",
    "template",
    "chatml",
    "tokeniz",
)
_ABOUT_PAGES = ("html", "web page", "webpage", "website")
_ABOUT_ENCODINGS = ("mojibake", "encod", "utf-8", "utf8", "latin-1", "unicode", "garbled")


@exchange_rule("S014", "stray-tokens-in-content", Severity.ERROR)
def stray_tokens_in_content(context: RuleContext) -> Iterator[Claim]:
    """Report template tokens, an error page or mojibake in the text."""
    for choice in context.reply.choices:
        yield from _strays_in(context, choice)


def _strays_in(context: RuleContext, choice: Choice) -> Iterator[Claim]:
    text = choice.text
    token = stray_tokens(text)
    if token is not None and not _is_from_request(context, token.found):
        about = _is_about(context, _ABOUT_TOKENS)
        if token.last or not about:
            sure = token.last and not about
            yield _stray_claim(choice, token, sure=sure)
    page = error_page(text)
    if page is not None and not _is_about(context, _ABOUT_PAGES):
        alone = not text[: page.start].strip()
        yield _stray_claim(choice, page, sure=alone)
    garbled = mojibake(text)
    if garbled is not None and not _is_from_request(context, garbled.found):
        sure = not _is_about(context, _ABOUT_ENCODINGS)
        yield _stray_claim(choice, garbled, sure=sure)
    cut = None if _is_invalid(context) else replaced(text)
    if cut is not None and not _is_from_request(context, cut.found):
        warning = _stray_claim(choice, cut, sure=False)
        yield replace(warning, severity=Severity.WARNING)


def _stray_claim(choice: Choice, stray: StrayToken, *, sure: bool) -> Claim:
    piece = _piece_at(choice, stray.start)
    shown = choice.text[max(stray.start - _AROUND, 0) : stray.start + 2 * _AROUND]
    excluded = (
        Excluded("the conversation is about it", "the request contains nothing like it"),
        Excluded(
            "it is quoted, or part of code", "it is in plain text, outside of quotes and code"
        ),
    )
    return Claim(
        message=f"the answer text contains {stray.what}"
        + (", at the end of a turn" if stray.last and stray.start else ""),
        hint=(
            "set the server's chat template and stop tokens to those of the model; for"
            " broken characters, find the proxy or server that decodes the stream"
        ),
        blame=Blame.UPSTREAM,
        confidence=Confidence.LIKELY if sure else Confidence.POSSIBLE,
        event=piece.event,
        place=piece.carrier.place,
        evidence=shown,
        excluded=excluded if sure else (),
    )


def _is_from_request(context: RuleContext, found: str) -> bool:
    return any(found in message.text for message in context.request.history)


def _is_about(context: RuleContext, words: tuple[str, ...]) -> bool:
    texts = (message.text.lower() for message in context.request.history)
    return any(word in text for text in texts for word in words)


def _is_invalid(context: RuleContext) -> bool:
    return any(each.kind is AnomalyKind.INVALID_UTF8 for each in context.stream.anomalies)


def _piece_at(choice: Choice, start: int) -> TextFragment:
    """Return the text fragment that contains character number `start` of the text."""
    pieces = [piece for piece in choice.pieces if piece.channel is Channel.TEXT]
    ends = [*accumulate(len(piece.text) for piece in pieces)]
    return pieces[min(bisect_right(ends, start), len(pieces) - 1)]
