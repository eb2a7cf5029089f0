r"""Patterns of secrets.

Two patterns per kind. The loose one decides what is overwritten: a false alarm costs a few
asterisks, a miss leaks a key. The strict one is the provider's documented format, and makes a match
certain.

Text is bytes decoded as Latin-1, one character per byte. Asterisks match nothing, so what has been
overwritten is not found again; every pattern takes what follows in the same word, so that
overwriting uncovers no new match but rarely; all of a match is visible ASCII, or whitespace.

Cost: linear in the length of the text, whatever it is: no pattern can begin more than once within
a run that it may have to scan to its end in vain.

Source: formats as the providers document them or as their keys look.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from deltatape.regex import OR_NONE

_WORD = r"(?<![A-Za-z0-9])"
_REST = r"[A-Za-z0-9_-]*+"
# A pattern that begins with b, f, n, r, t or u must not begin within a JSON escape.
_ESCAPED_WORD = r"(?<![A-Za-z0-9\\])"
_BEHIND = re.compile(r"\(\?<!(?:\[[^]]*\]|\\d)\)")
_PEM = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
NAMES = (
    r"api[_-]?key|secret(?:[_-]?access)?[_-]?key|(?:access|auth|refresh|session)[_-]?token"
    r"|client[_-]?secret|password|passwd"
)
"""Names whose value may be a secret."""
_ANSWER = r"\\{0,3}[\"']?\s{0,4}[:=]\s{0,4}\\{0,3}[\"']?"
# The meaning of a short escape in a text whose escapes have not been undone.
_SHORT = r"(?<=\\)[bfnrt]"
_ESCAPED_ANSWER = rf"(?:[\\\"'\s]|{_SHORT}){{0,128}}[:=](?:[\\\"'\s]|{_SHORT}){{0,128}}"
_VALUE = r"[^\s\"'\\,;&<>{}\[\]()\x00-\x1f\x7f-\xff]"


class SecretMatch(NamedTuple):
    """A secret in a text: `[start, end)`; `certain` when it has its provider's exact format."""

    kind: str
    start: int
    end: int
    certain: bool


@dataclass(frozen=True)
class _Pattern:
    """Its expressions are compiled when needed: most texts need none of them."""

    kind: str
    _loose: str
    _tight: str | None = None
    hints: tuple[str, ...] = ()
    """Every match contains one of them."""
    names: tuple[str, ...] = ()
    """Or one of these, in lower case, without `-` and `_`."""
    _unread: str | None = None

    @cached_property
    def loose(self) -> re.Pattern[str]:
        """Its group 1, if it has one, is the secret."""
        return re.compile(self._loose, re.ASCII)

    @cached_property
    def tight(self) -> re.Pattern[str] | None:
        return None if self._tight is None else re.compile(self._tight, re.ASCII)

    @cached_property
    def unread(self) -> re.Pattern[bytes]:
        r"""Matches whatever `loose` matches when short JSON escapes (`\n`, `\"`) are undone."""
        source = _after_escapes(self._loose if self._unread is None else self._unread)
        return re.compile(source.encode("latin-1"))


def _after_escapes(pattern: str) -> str:
    """Let `pattern` also begin after a short escape, whose letter belongs to no word."""
    pattern = pattern.replace(_ESCAPED_WORD, _WORD)
    return _BEHIND.sub(r"(?:\g<0>|(?<=\\\\[bfnrt]))", pattern)


PATTERNS = (
    _Pattern(
        "private key",
        rf"-----BEGIN {_PEM}(?:[A-Za-z0-9+/=\s:,]|-(?!----){OR_NONE})*+(?:-----END {_PEM})?",
        r"-----BEGIN ",
        ("PRIVATE KEY",),
    ),
    _Pattern(
        "Anthropic key",
        rf"{_WORD}sk-ant-[A-Za-z0-9_-]{{16,}}+",
        r"sk-ant-(?:api03|admin01)-[A-Za-z0-9_-]{93}AA",
        ("sk-ant-",),
    ),
    _Pattern(
        "OpenRouter key",
        rf"{_WORD}sk-or-[A-Za-z0-9_-]{{16,}}+",
        r"sk-or-v1-[0-9a-f]{64}",
        ("sk-or-",),
    ),
    _Pattern(
        "OpenAI key",
        rf"{_WORD}sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{{16,}}+",
        r"[A-Za-z0-9_-]{58,74}T3BlbkFJ[A-Za-z0-9_-]{58,74}",
        ("sk-proj-", "sk-svcacct-", "sk-admin-"),
    ),
    _Pattern(
        "API key",
        rf"{_WORD}sk-[A-Za-z0-9_-]{{16,}}+|{_WORD}sk_(?:live|test)_[A-Za-z0-9]{{10,}}+"
        rf"|{_ESCAPED_WORD}(?:pk-[A-Za-z0-9_-]{{16,}}+|rk[-_](?:live|test)_[A-Za-z0-9]{{10,}}+)",
        r"sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}",
        ("sk-", "sk_", "pk-", "rk-", "rk_"),
    ),
    _Pattern("Google key", rf"{_WORD}AIza[A-Za-z0-9_-]{{30,}}+", r"AIza[\w-]{35}", ("AIza",)),
    _Pattern("Google token", rf"{_WORD}ya29\.[A-Za-z0-9_-]{{10,}}+[\w.-]*+", None, ("ya29.",)),
    _Pattern(
        "AWS key",
        rf"{_WORD}(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{{16}}{_REST}",
        r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b",
        ("A3T", "AKIA", "ASIA", "ABIA", "ACCA"),
    ),
    _Pattern(
        "Bedrock key",
        rf"{_WORD}ABSK[A-Za-z0-9+/]{{20,}}+=*+{_REST}"
        rf"|{_ESCAPED_WORD}bedrock-api-key-[A-Za-z0-9+/=_-]{{10,}}+",
        r"ABSK[A-Za-z0-9+/]{109,269}={0,2}",
        ("ABSK", "bedrock-api-key-"),
    ),
    _Pattern(
        "AWS signature", rf"Signature=([0-9a-f]{{64}}{_REST})", r"[0-9a-f]{64}", ("Signature=",)
    ),
    _Pattern(
        "Groq key", rf"{_WORD}gsk_[A-Za-z0-9]{{16,}}+{_REST}", r"gsk_[A-Za-z0-9]{52}", ("gsk_",)
    ),
    _Pattern(
        "xAI key", rf"{_WORD}xai-[A-Za-z0-9]{{16,}}+{_REST}", r"xai-[A-Za-z0-9]{80}", ("xai-",)
    ),
    _Pattern(
        "Hugging Face token", rf"{_WORD}hf_[A-Za-z0-9]{{16,}}+{_REST}", r"hf_[A-Za-z]{34}", ("hf_",)
    ),
    _Pattern(
        "Perplexity key",
        rf"{_WORD}pplx-[A-Za-z0-9]{{16,}}+{_REST}",
        r"pplx-[A-Za-z0-9]{48}",
        ("pplx-",),
    ),
    _Pattern(
        "GitHub token",
        rf"{_WORD}(?:gh[pousr]_[A-Za-z0-9]{{16,}}+|github_pat_\w{{16,}}+){_REST}",
        r"gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{82}",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    ),
    _Pattern(
        "Databricks token", rf"{_WORD}dapi[a-f0-9]{{16,}}+{_REST}", r"dapi[a-f0-9]{32}", ("dapi",)
    ),
    _Pattern(
        "Azure secret",
        r"(?<![\w\\-])[\w-]{3}\dQ~[\w.~-]{20,}+",
        r"[\w-]{3}\dQ~[\w.~-]{31,34}",
        ("Q~",),
    ),
    _Pattern(
        "Telegram token",
        r"(?<!\d)\d{8,10}:AA[\w-]{30,}+",
        r"\d{8,10}:AA[\w-]{33}",
        (":AA",),
    ),
    _Pattern(
        "JSON Web Token",
        r"(?<![\w-])ey[\w-]{10,}+\.ey[\w-]{10,}+[\w.-]*+",
        r"ey[\w-]{17,}+\.ey[\w-]{17,}+\.[\w-]{10,}",
        (".ey",),
    ),
    _Pattern(
        "bearer token",
        r"(?i:bearer)[ \t]{1,4}([A-Za-z0-9._~+/=-]{16,}+)",
        names=("bearer",),
        _unread=r"(?i:bearer)(?:[ \t]|\\++t){1,4}[A-Za-z0-9._~+/=-]{16}",
    ),
    _Pattern(
        "basic credential",
        r"(?i:authorization)\W{1,8}(?i:basic) {1,4}([A-Za-z0-9+/=]{8,}+)",
        names=("authorization",),
        _unread=rf"(?i:authorization)(?:\W|{_SHORT}){{1,128}}(?i:basic) {{1,4}}[A-Za-z0-9+/=]{{8}}",
    ),
    _Pattern(
        "password in a URL",
        r"://([^/\s:@\"'<>\\?#\x7f-\xff]{1,256}+:[^/\s@\"'<>\\\x7f-\xff]{1,256}+)@",
        None,
        ("://",),
        _unread=rf"://(?:[^/\s:@\"'<>\\?#\x7f-\xff]|\\++b{OR_NONE}){{1,256}}+"
        rf":(?:[^/\s@\"'<>\\\x7f-\xff]|\\++b{OR_NONE}){{1,256}}+@",
    ),
    _Pattern(
        "credential by its name",
        rf"(?i:(?<![A-Za-z])(?:{NAMES})){_ANSWER}((?={_VALUE}{{0,200}}[0-9]){_VALUE}{{12,}}+)",
        names=(
            "apikey",
            "secretkey",
            "secretaccesskey",
            "accesstoken",
            "authtoken",
            "refreshtoken",
            "sessiontoken",
            "clientsecret",
            "password",
            "passwd",
        ),
        _unread=rf"(?i:(?<![A-Za-z])(?:{NAMES})){_ESCAPED_ANSWER}(?={_VALUE}{{0,200}}[0-9]){_VALUE}{{12}}",
    ),
)
"""In the order of precedence where finds overlap: the first one names it."""
_EVERY_HINT = tuple({hint for pattern in PATTERNS for hint in pattern.hints})
_EVERY_NAME = tuple({name for pattern in PATTERNS for name in pattern.names})


def find(text: str) -> Iterator[SecretMatch]:
    """Yield every secret in `text`, kind by kind; several kinds may overlap."""
    hints = {*filter(text.__contains__, _EVERY_HINT)}
    squeezed = text.lower().replace("-", "").replace("_", "")
    names = {*filter(squeezed.__contains__, _EVERY_NAME)}
    for pattern in PATTERNS if hints or names else ():
        if hints.isdisjoint(pattern.hints) and names.isdisjoint(pattern.names):
            continue
        group = 1 if pattern.loose.groups else 0
        for match in pattern.loose.finditer(text):
            start, end = match.span(group)
            secret = text[start:end]
            # In a URL, what was overwritten may still look like a user with a password.
            if secret.strip("*:"):
                tight = pattern.tight
                yield SecretMatch(pattern.kind, start, end, bool(tight and tight.search(secret)))
