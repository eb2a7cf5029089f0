"""S011: another model answers than was asked for."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import ClassVar, NamedTuple

from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.rules._base import Claim, RuleContext, finding
from deltatape.rules.evidence import excerpt

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


class OtherModel:
    """The answer names another model than the request.

    ## What it does
    Compares the two names where both are those of known families, and tells where they cannot mean
    the same: another family, another tier (`gpt-4o` and `gpt-4o-mini`), another size or version.

    ## Why is this bad
    Behaviour, price and abilities differ, and a bug that only one of them has cannot be found. A
    gateway that falls back to another model does it without a word.

    ## Innocent explanations
    - An alias stands for a dated version: `gpt-4o` and `gpt-4o-2024-08-06`, `-latest`.
    - The provider is written in front, or a cloud writes the name in its own way.
    - Routers (`auto`), deployments at Azure, local servers that answer with a path or a fixed name:
      not told, since one of the names is no model's.
    - The request itself allows other models (`models`, `fallbacks`): not told.
    - The owner of a gateway gave one model the name of another: nothing on the tape speaks against
      it, so this is possible only.

    ## Example
    ```
    "model": "gpt-4o"
    ...
    data: {"model":"gpt-4o-mini-2024-07-18","choices":[...]}
    ```

    ## Fix
    Look up the aliases and fallbacks of the gateway, and whether the provider still has the model.

    ## References
    - https://github.com/agentgateway/agentgateway/issues/1361
    - https://github.com/icebear0828/codex-proxy/issues/660
    - https://platform.openai.com/docs/models
    """

    code: ClassVar[str] = "S011"
    name: ClassVar[str] = "other-model"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        asked, answered = context.asked.model, context.reply.model
        if not asked or not answered or context.reply.from_app:
            return
        how = _difference(asked, answered)
        if how is None or _may_be_another(context):
            return
        first = context.stream.events[0]
        yield finding(
            self,
            context,
            Claim(
                message=f"the request asks for {excerpt(asked, 80)!r}, and"
                f" {excerpt(answered, 80)!r} answers: {how}",
                hint="look up the aliases and fallbacks of the gateway",
                blame=Blame.UPSTREAM,
                confidence=Confidence.POSSIBLE,
                event=first.number,
                place=first.place,
                evidence=f"model: {answered}",
            ),
        )


class _Model(NamedTuple):
    """What the name of a model says."""

    family: str
    tiers: frozenset[str]
    size: str | None
    version: tuple[str, ...]


def _may_be_another(context: RuleContext) -> bool:
    """Whether the request allows it, or its names are their owner's."""
    request = context.exchange.request
    if any(word in request.body for word in _FALLBACKS):
        return True
    return any(word in request.upstream or word in request.path for word in _DEPLOYMENTS)


def _difference(asked: str, answered: str) -> str | None:
    """How the models differ; None where they may be the same, or one of them is not known."""
    one, other = _read(asked), _read(answered)
    if one is None or other is None:
        return None
    if one.family != other.family:
        return "another family of models"
    if one.tiers != other.tiers and (one.family in _BARE_TIER or (one.tiers and other.tiers)):
        return "another tier of the family"
    if one.size and other.size and one.size != other.size:
        return "another size of the family"
    if any(mine != theirs for mine, theirs in zip(one.version, other.version, strict=False)):
        return "another version"
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
    """The family, and where the name of the model begins, behind that of the provider."""
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
