"""Errors that the provider reports: whose fault they are, and what to do."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from deltatape.model.exchange import Tap, header
from deltatape.model.finding import Blame, Confidence, Excluded, Severity
from deltatape.model.reply import Observation
from deltatape.model.stream import Format, Place, Span
from deltatape.printable import excerpt
from deltatape.rules.context import Claim, RuleContext
from deltatape.rules.rule import exchange_rule
from deltatape.wire.json_value import parse

_CLIENT_ERROR = 400
_SERVER_ERROR = 500
# Nobody's fault: the body came too slowly, or the state that the request needs was in use.
_AT_THAT_TIME = frozenset({408, 409, 425})
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
        cause = _cause(context, _reported(context, _body_text(context), status=head.status))
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
    told = reply.error or (seen.detail if seen else "")
    cause = _cause_of_event(context, told, seen)
    by_upstream = cause.blame is Blame.UPSTREAM
    yield Claim(
        message=f"{'the app sent its page' if reply.from_app else 'upstream sent'} an"
        f" error under status {head.status if head else '?'}: {told}",
        hint=_CHECK_EVENTS if by_upstream or not cause.hint else f"{cause.hint}; {_CHECK_EVENTS}",
        blame=cause.blame,
        confidence=context.seen if by_upstream else Confidence.LIKELY,
        event=seen.event if seen else None,
        place=seen.place if seen else None,
        evidence=seen.evidence if seen else reply.error or "",
        excluded=cause.excluded,
    )


_CHECK_EVENTS = "in the client, check every event for an error; this answer is incomplete"


def _cause_of_event(context: RuleContext, told: str, seen: Observation | None) -> "_Cause":
    """Return whose fault an error under status 200 is: as under a status, if it names one."""
    if context.reply.from_app:
        return _Cause(hint="")
    event = None if seen is None or seen.event is None else context.stream.events[seen.event]
    error = _reported(context, event.data if event else "", told)
    if error.status is None:
        found = (cause for words, cause in _BY_WORDS if words.search(error.text))
        return next(found, _OF_UPSTREAM)
    return _cause(context, error)


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
_RATE = _Cause(
    hint=(
        "a rate limit of the account: send less at once, wait as the answer says before each"
        " retry, or have the limit raised"
    )
)
_ELSEWHERE = _Cause(
    hint=(
        "the provider could not load something that the request names: check that its address"
        " can be reached from the internet"
    )
)
_GONE = _Cause(
    hint=(
        "what the request refers to is not stored, or no longer: check how long the provider"
        " keeps it, and that the same account made it"
    )
)
_SIGNATURE = _Cause(
    hint=(
        "repeat blocks that have a signature as they were delivered, to the same model; if the"
        " tape shows no change by the app, ask the provider"
    )
)
_OTHERWISE = _Cause(
    hint=(
        "the recorded request has what the error says is missing: tape the other side of each"
        " gateway, and compare the requests with deltatape diff"
    )
)
_OF_UPSTREAM = _Cause(hint=_LATER, blame=Blame.UPSTREAM)
_BY_WORDS = (
    (re.compile(r"(?i)api[ _-]?key|authenticat|unauthori[sz]ed|permission|credential"), _KEY),
    (
        re.compile(
            r"(?i)(?:^|[\s(])--[a-z][\w-]+|healthy (?:upstream|deployment)|no endpoints found"
            r"|no deployments available|no route matched|litellm\.|upstream connect error"
            r"|provider returned error"
        ),
        _OF_THE_SERVER,
    ),
    (
        re.compile(
            r"(?i)content[_ -]?(?:filter|policy|management)|safety|moderation|flagged"
            r"|data_inspection|inappropriate|prohibited|usage polic"
        ),
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
    (re.compile(r"(?i)\bdownload|\bfetch(?:ing|ed)?\b|upstream status code"), _ELSEWHERE),
    (
        re.compile(
            r"(?i)\b(?:file|response|item|conversation|container|vector[ _]store|cache\w*|content"
            r"|image|prompt|thread|batch)\b.{0,80}\b(?:not found|no longer|does(?: not|n't) exist)"
            r"|\bno such (?:file|response|item|conversation|image)|\bexpired\b"
        ),
        _GONE,
    ),
    (re.compile(r"(?i)\bsignature\b"), _SIGNATURE),
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
_OWN_RATE = re.compile(
    r"(?i)\b(?:your|account|organi[sz]ation|project|tier|plan|[rt]pm)\b|\b(?:requests|tokens) per\b"
    r"|per[ -_]minute"
)
"""How it words that these requests came too often, not that the service is overloaded."""
_STATUS_OF = (
    (re.compile(r"(?i)rate_?limit|resource_?exhausted|throttl|too_?many|quota"), 429),
    (re.compile(r"(?i)server_?error|overload|internal|unavailable|^api_error$|time_?out"), 500),
)
"""What an event names its error, and the status that this has as an answer."""
_ERROR_STATUS = re.compile(r"[45][0-9]{2}")
_PAIRING = re.compile(
    r"(?i)tool_?(?:use|result|call|message)|role 'tool'|function[_ ]call|call_id|following item"
)
"""How an error words that a call, its result or its reasoning is missing."""
_WORD = re.compile(r"[\w.:-]+")
_INVALID = frozenset(
    {"invalid_request_error", "badrequesterror", "invalid_argument", "validationexception"}
    | {"invalid_request_message_order", "bad_request_error", "invalid_request"}
)
"""Error types of providers for an invalid request."""
_PATH = re.compile(r"(?:^|[\s`'\"*.])([a-z][A-Za-z_]+)(?=[.\[][\w\[]|:\s|[`'\"]|\s\()")
_LONGEST_BODY = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reported:
    """An error as it is reported; "" for what it does not say.

    Attributes:
        status: of the answer, or the one that an event names; None: it names none.
        text: its message and code, or all of it.
        invalid: its type, if that is one for invalid requests.
        named: the member of the request that it names.
    """

    status: int | None
    text: str
    invalid: str = ""
    named: str = ""


def _cause(context: RuleContext, error: _Reported) -> _Cause:
    """Return whose fault an error with a status is."""
    status = error.status or 0
    of_app = context.exchange.tap is Tap.APP
    if status == _TOO_MANY and _NO_QUOTA.search(error.text):
        return _QUOTA
    if status == _TOO_MANY and _OWN_RATE.search(error.text):
        return _RATE
    if status in _AT_THAT_TIME:
        return _Cause(hint=_retry_advice(context))
    if status >= _SERVER_ERROR or status == _TOO_MANY:
        # The app's endpoint may pass on an error of its provider.
        passed_on = of_app and status != _SERVER_ERROR
        return _Cause(hint=_retry_advice(context), blame=None if passed_on else Blame.UPSTREAM)
    if status in _PROBES and not context.recognised:
        return _NOT_THERE
    if status in _KEYS:
        return _PAGE if _is_page(context) else _KEY
    if _is_page(context):
        return _PAGE
    for words, cause in _BY_WORDS:
        if words.search(error.text):
            return cause
    if status == _NOT_FOUND:
        return _UNKNOWN_MODEL
    if not error.invalid or not error.named or not context.recognised or of_app:
        return _UNCLEAR
    if _PAIRING.search(error.text) and _is_paired(context, error.text):
        return _OTHERWISE
    return _Cause(
        hint=f"fix {error.named!r} in the request, as the message says",
        blame=Blame.APP,
        excluded=(
            Excluded(
                "a proxy, gateway or server could not answer",
                (
                    "the error, in a provider's own format, calls the request invalid"
                    f" ({error.invalid})"
                ),
            ),
            Excluded(
                "a gateway rewrote the request",
                (f"the error names {error.named!r}, which is in the recorded request"),
            ),
            Excluded("a limit, a key or a missing feature", "the message mentions none of these"),
        ),
    )


def _is_paired(context: RuleContext, message: str) -> bool:
    """Return whether the recorded request has what the error says is missing of a pair.

    Each id that the error names, or the message that it names has, is there twice; or a reasoning
    item has one after it.
    """
    content = context.exchange.request.content.decode("utf-8", "replace")
    asked = _members(parse(content).value)
    listed = next((each for key in _LISTS if isinstance(each := asked.get(key), list)), [])
    if "following item" in message:
        said = frozenset(_WORD.findall(message))
        places = [at for at, each in enumerate(listed) if _members(each).get("id") in said]
        return bool(places) and all(
            at + 1 < len(listed) and _members(listed[at + 1]).get("type") != "reasoning"
            for at in places
        )
    words = (each for each in _WORD.findall(message) if any(map(str.isdigit, each)))
    ids = {each for each in words if f'"{each}"' in content}
    for found in _PLACE.finditer(message):
        at = int(found[1])
        ids |= set(_ids_in(listed[at])) if at < len(listed) else set()
    return bool(ids) and all(content.count(f'"{each}"') > 1 for each in ids)


_LISTS = ("messages", "input", "contents")
_PLACE = re.compile(r"(?:messages|input|contents)\.?\[?(\d{1,6})\]?")
_ID_KEYS = frozenset({"id", "tool_call_id", "tool_use_id", "call_id", "toolUseId"})


def _ids_in(message: object) -> Iterator[str]:
    """Yield the ids of calls and results in a message of a request."""
    pending = [message]
    while pending:
        one = pending.pop()
        if isinstance(one, list):
            pending += one
        elif isinstance(one, dict):
            pending += one.values()
            yield from (v for k, v in one.items() if k in _ID_KEYS and isinstance(v, str))


def _members(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _is_page(context: RuleContext) -> bool:
    """Return whether the answer is an HTML page."""
    return _body(context)[:200].lstrip()[:1] == b"<"


def _body_text(context: RuleContext) -> str:
    return _body(context)[:_LONGEST_BODY].decode("utf-8", "replace")


def _reported(
    context: RuleContext, text: str, told: str = "", status: int | None = None
) -> _Reported:
    """Return what an error says.

    Args:
        context: its exchange.
        text: the answer, or the data of the event.
        told: the message, where the dialect has found it.
        status: of the answer; None: an event.
    """
    body = parse(text).value
    if isinstance(body, list) and len(body) == 1:
        body = body[0]  # Google wraps the error of a stream in an array
    if not isinstance(body, dict):
        return _Reported(status=status, text=told or text)
    inside = _members(body.get("response")).get("error")  # of OpenAI Responses
    error = _members(body.get("error")) or _members(inside) or body
    message = error.get("message")
    if isinstance(message, dict):  # Mistral puts validation errors into the message
        error = {**error, **message}
    if not told and isinstance(message, str):
        told = message
    shown = f"{told} {error.get('code')}" if told else text
    head = context.exchange.response
    kind = header(head.headers, "x-amzn-errortype") if head else None
    names = list(_names_of(error, kind))
    invalid = next((name for name in names if name.lower() in _INVALID), "")
    if isinstance(error.get("detail"), list):
        invalid = invalid or "a validation error"
    members = _members(parse(context.exchange.request.content.decode("utf-8", "replace")).value)
    named = (root for root in _members_in(error, shown) if root in members)
    if status is None:
        status = _status_in(error, names)
    return _Reported(status=status, text=shown, invalid=invalid, named=next(named, ""))


def _status_in(error: Mapping[str, object], names: Sequence[str]) -> int | None:
    """Return the status that the error of an event names, or has as an answer."""
    codes = (str(error.get(key)) for key in ("code", "status", "status_code"))
    found = next(filter(_ERROR_STATUS.fullmatch, codes), None)
    if found is not None:
        return int(found)
    for words, status in _STATUS_OF:
        if any(map(words.search, names)):
            return status
    return _CLIENT_ERROR if any(name.lower() in _INVALID for name in names) else None


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
