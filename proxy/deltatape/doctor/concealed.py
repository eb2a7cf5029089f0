"""Code as it may be shown: credentials that stand in it are left out.

Loose on purpose: what is hidden without need costs nothing, the code is in the user's editor.
"""

import re

HIDDEN = "***"

_USERINFO = re.compile(r"(?<=://)[^/\s\"'@]+(?=@)")
_NAMED = re.compile(
    r"""(?P<name>[\w-]*(?:key|token|secret|passw(?:or)?d|authorization)["']?\s*(?:=>|:=|[=:])\s*
        (?:[rfbu](?=["'`]))?(?P<quote>["'`]?)(?:Bearer\s+)?)(?P<value>[^\s"'`,;)}&]{4,})""",
    re.IGNORECASE | re.VERBOSE,
)
_SHAPED = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|pplx|hf|r8|nvapi|csk|fw|tgp|ghp|github_pat|dapi)[-_][A-Za-z0-9_-]{6,}"
    r"|\bAIza[\w-]{8,}|\b(?:AKIA|ASIA|ABSK)[A-Za-z0-9+/=]{8,}|\bey[\w-]{12,}\.[\w-]{4,}[\w.-]*"
)
_READ = re.compile(r"[\w.]*(?:env|ENV|config|settings|args|self|this|os)\b[\w.\[(]*")


def conceal(text: str) -> str:
    """`text` with what looks like a credential, or is called one, as `***`."""
    text = _USERINFO.sub(HIDDEN, text)
    text = _NAMED.sub(_hidden, text)
    return _SHAPED.sub(HIDDEN, text)


def _hidden(match: re.Match[str]) -> str:
    """An expression that reads a credential from somewhere else is none itself."""
    if not match["quote"] and _READ.match(match["value"]):
        return match[0]
    return f"{match['name']}{HIDDEN}"
