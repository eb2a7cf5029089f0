"""Errors that the provider reports: whose fault they are, and what to do."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from deltatape.model.exchange import Tap, header
from deltatape.model.finding import Blame, Confidence, Excluded, Severity
from deltatape.model.stream import Format, Place, Span
from deltatape.printable import excerpt
from deltatape.rules.context import Claim, RuleContext
from deltatape.rules.rule import exchange_rule
from deltatape.wire.json_value import parse

_CLIENT_ERROR = 400
_SERVER_ERROR = 500
# The request was valid; the server could not or would not answer it at that time.
_NOT_THE_REQUEST = frozenset({408, 409, 425, 429})
_NOT_FOUND = 404
_KEYS = frozenset({401, 402, 403, 407})
_TOO_MANY = 429
_PROBES = frozenset({404, 405, 501})
"""How servers word that a path does not exist."""


@exchange_rule("S005", "error-event", Severity.ERROR, survives_loss=True)
def error_event(context: RuleContext) -> Iterator[Claim]:
    """Report an error that the provider sends."""
    head, reply = context.exchange.response, context.reply
    if head is not None and head.status >= _CLIENT_ERROR:
        cause = _cause(context, head.status)
        yield Claim(
            message=f"the answer is {_status_text(head.status, reply.error or _text(context))}",
            hint=cause.hint,
            blame=cause.blame,
            confidence=Confidence.LIKELY,
            severity=cause.severity,
            place=Place(span=_place(context).span, t_ns=head.t_ns, line=head.line),
            evidence=_text(context),
            excluded=cause.excluded,
        )
        return
    seen = next(iter(context.observed("S005")), None)
    if reply.error is None and seen is None:
        return
    yield Claim(
        message=f"{'the app sent its page' if reply.from_app else 'upstream sent'} an"
        f" error under status {head.status if head else '?'}:"
        f" {reply.error or (seen.detail if seen else '')}",
        hint="in the client, check every event for an error; this answer is incomplete",
        blame=None if reply.from_app else Blame.UPSTREAM,
        confidence=context.seen,
        event=seen.event if seen else None,
        place=seen.place if seen else None,
        evidence=seen.evidence if seen else reply.error or "",
    )


def _retry_advice(context: RuleContext) -> str:
    """Return when to ask again, if the answer says."""
    head = context.exchange.response
    retry_after = header(head.headers, "retry-after") if head is not None else None
    if retry_after is None:
        return f"{_LATER}: wait longer before each retry, and give up after a few"
    wait = retry_after.decode("latin-1")
    unit = " s" if wait.isdigit() else ""
    return f"{_LATER}: wait for retry-after, {excerpt(wait, 40)}{unit}"


def _status_text(status: int, message: str) -> str:
    """Combine status and message of an error answer, without the status twice."""
    known = message.startswith(f"HTTP {status}")
    return message if known else f"status {status}: {message}"


def _place(context: RuleContext) -> Place:
    """Return where the error is: in the body, or in the last message of a WebSocket."""
    stream = context.stream
    if stream.format is Format.WEBSOCKET:
        return stream.events[-1].place
    return Place(Span(0, len(stream.body)), 0, None)


def _body(context: RuleContext) -> bytes:
    return context.stream.body[slice(*_place(context).span)]


def _text(context: RuleContext) -> str:
    return _body(context)[:1000].decode("utf-8", "backslashreplace").strip() or "(no message)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cause:
    """The side at fault for an error answer, and what to do."""

    hint: str
    blame: Blame | None = None
    severity: Severity | None = None
    excluded: tuple[Excluded, ...] = ()


_LATER = "a later attempt may succeed"
_KEY = _Cause(hint="check the API key, its permissions, and whether it belongs to this provider")
_NOT_THERE = _Cause(
    hint="nothing to do if the client handles it: this path is not a model endpoint",
    severity=Severity.INFO,
)
_PAGE = _Cause(
    hint=(
        "a web server, proxy or firewall answered, not the API: check the base URL, the"
        " proxy settings, and what is between here and the provider"
    )
)
_OF_THE_SERVER = _Cause(
    hint=(
        "the server or gateway reports a limit of its own: change how it is started or"
        " configured, or do not request this feature"
    )
)
_LIMIT = _Cause(
    hint=(
        "a limit of the model or the account: shorten the history, request less, or raise the limit"
    )
)
_FILTERED = _Cause(hint="a content filter of the provider rejected the request: change the content")
_QUOTA = _Cause(
    hint=(
        "the account's quota is used up: check its plan and billing; waiting helps only"
        " if the quota is per minute or per day"
    )
)
_UNKNOWN_MODEL = _Cause(
    hint=("check the model's name, the base URL, and whether the key has access to both")
)
_NOT_HERE = _Cause(
    hint=(
        "this model or server does not support what the request uses: leave it out, or"
        " use another model"
    )
)
_UNCLEAR = _Cause(
    hint=(
        "read the message: it names no member of the request, so the tape does not show"
        " whether the request is invalid or the server failed"
    )
)
_BY_WORDS = (
    (
        re.compile(
            r"(?i)(?:^|[\s(])--[a-z][\w-]+|healthy (?:upstream|deployment)|no endpoints found"
            r"|no deployments available|no route matched|litellm\.|upstream connect error"
            r"|provider returned error"
        ),
        _OF_THE_SERVER,
    ),
    (re.compile(r"(?i)api[ _-]?key|authenticat|unauthori[sz]ed|permission|credential"), _KEY),
    (
        re.compile(r"(?i)content[_ -]?(?:filter|policy|management)|safety|moderation|flagged"),
        _FILTERED,
    ),
    (
        re.compile(
            r"(?i)context[_ -](?:length|window)|too (?:long|large)|too many tokens|maximum"
            r"|quota|credit|billing|balance|exceed"
        ),
        _LIMIT,
    ),
    (
        re.compile(
            r"(?i)model[_ -]not[_ -]found|\bmodel\b.{0,80}\b(?:not (?:exist|found|available)|does"
            r" not exist)|(?:unknown|invalid|no such) model|deployment"
        ),
        _UNKNOWN_MODEL,
    ),
    (
        re.compile(
            r"(?i)unsupported|not supported|does(?: not|n't) support|unrecogni[sz]ed|unknown"
            r" (?:parameter|field|name|argument)|extra (?:inputs|fields)|not permitted"
            r"|not allowed|not enabled|deprecated"
        ),
        _NOT_HERE,
    ),
)
"""Causes of errors outside the request; the first match counts."""
_NO_QUOTA = re.compile(
    r"(?i)insufficient[_ ](?:quota|balance|credits?|funds)|exceeded your current quota"
    r"|credit balance|out of credits"
)
"""How a status 429 words that a quota is used up, not that requests came too often."""
_INVALID = frozenset(
    {"invalid_request_error", "badrequesterror", "invalid_argument", "validationexception"}
    | {"invalid_request_message_order", "bad_request_error", "invalid_request"}
)
"""Error types of providers for an invalid request."""
_PATH = re.compile(r"(?:^|[\s`'\"*.])([a-z][A-Za-z_]+)(?=[.\[][\w\[]|:\s|[`'\"]|\s\()")
_LONGEST_BODY = 64 * 1024


def _cause(context: RuleContext, status: int) -> _Cause:
    """Return whose fault an answer with this status is."""
    of_app = context.exchange.tap is Tap.APP
    if status == _TOO_MANY and _NO_QUOTA.search(_text(context)):
        return _QUOTA
    if status >= _SERVER_ERROR or status in _NOT_THE_REQUEST:
        # The app's endpoint may pass on an error of its provider.
        passed_on = of_app and status != _SERVER_ERROR
        return _Cause(hint=_retry_advice(context), blame=None if passed_on else Blame.UPSTREAM)
    if status in _PROBES and not context.recognised:
        return _NOT_THERE
    if status in _KEYS:
        return _PAGE if _is_page(context) else _KEY
    if _is_page(context):
        return _PAGE
    message, invalid, named = _error_of(context)
    for words, cause in _BY_WORDS:
        if words.search(message):
            return cause
    if status == _NOT_FOUND:
        return _UNKNOWN_MODEL
    if not invalid or not named or not context.recognised or of_app:
        return _UNCLEAR
    return _Cause(
        hint=f"fix {named!r} in the request, as the message says",
        blame=Blame.APP,
        excluded=(
            Excluded(
                "a proxy, gateway or server could not answer",
                f"the error, in a provider's own format, calls the request invalid ({invalid})",
            ),
            Excluded(
                "a gateway rewrote the request",
                (f"the error names {named!r}, which is in the recorded request"),
            ),
            Excluded("a limit, a key or a missing feature", "the message mentions none of these"),
        ),
    )


def _is_page(context: RuleContext) -> bool:
    """Return whether the answer is an HTML page."""
    return _body(context)[:200].lstrip()[:1] == b"<"


def _error_of(context: RuleContext) -> tuple[str, str, str]:
    """Return the error's message, its type, and the request member it names.

    "" for what it does not say.
    """
    text = _body(context)[:_LONGEST_BODY].decode("utf-8", "replace")
    body = parse(text).value
    if isinstance(body, list) and len(body) == 1:
        body = body[0]  # Google wraps the error of a stream in an array
    head = context.exchange.response
    kind = header(head.headers, "x-amzn-errortype") if head else None
    asked = parse(context.exchange.request.content.decode("utf-8", "replace")).value
    members = frozenset(asked) if isinstance(asked, dict) else frozenset()
    if not isinstance(body, dict):
        return text, "", ""
    inner = body.get("error")
    error = inner if isinstance(inner, dict) else body
    message = error.get("message")
    if isinstance(message, dict):  # Mistral puts validation errors into the message
        error = {**error, **message}
    shown = f"{message} {error.get('code')}" if isinstance(message, str) else text
    invalid = next((name for name in _names_of(error, kind) if name.lower() in _INVALID), "")
    if isinstance(error.get("detail"), list):
        invalid = invalid or "a validation error"
    named = (root for root in _members_in(error, shown) if root in members)
    return shown, invalid, next(named, "")


def _names_of(error: Mapping[str, object], kind: bytes | None) -> Iterator[str]:
    """Yield the names that an error gives itself."""
    for key in ("type", "status", "code", "__type"):
        value = error.get(key)
        if isinstance(value, str):
            yield value
    if kind is not None:
        yield kind.decode("latin-1").partition(":")[0]


def _members_in(error: Mapping[str, object], message: str) -> Iterator[str]:
    """Yield the top-level request members that an error may name."""
    param = error.get("param")
    if isinstance(param, str):
        yield re.split(r"[.\[]", param, maxsplit=1)[0]
    details = error.get("detail")
    for each in details if isinstance(details, list) else ():
        where = each.get("loc") if isinstance(each, dict) else None
        yield from (one for one in where or () if isinstance(one, str)) if where else ()
    for found in _PATH.finditer(message):
        yield found[1]
