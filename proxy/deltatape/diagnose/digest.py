"""An exchange as a digest: what is needed to read replies back, and not the exchange itself."""

import hashlib
from collections.abc import Iterable, Iterator

from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.model.app_names import CONTRACT, AppNames
from deltatape.model.asked import Asked, Message
from deltatape.model.digest import Digest, Heard, SaidCall
from deltatape.model.exchange import Exchange, Tap
from deltatape.model.reply import Choice, Reply, ToolCall
from deltatape.rules.finish import Finish, finish_of
from deltatape.rules.words import count

_SYSTEM = frozenset({"system", "developer"})
_ASSISTANT = frozenset({"assistant", "model"})
_FREE = frozenset({None, "auto", "none"})
_ANY = frozenset({"required", "any"})
_CUT = frozenset({Finish.LENGTH, Finish.FILTER})


def digest(exchange: Exchange, app: AppNames = CONTRACT) -> Digest:
    """The digest of `exchange`; `check_conversation` compares many of them, across tapes.

    Args:
        exchange: with or without a response.
        app: what an application calls the events of its own endpoint.
    """
    return digest_analysis(analyse(exchange, app))


def digest_analysis(analysis: Analysis) -> Digest:
    """As `digest`, for an exchange that has been analysed already."""
    exchange, asked, reply = analysis.exchange, analysis.asked, analysis.reply
    said = [message for message in asked.history if message.role not in _SYSTEM]
    system = [message for message in asked.history if message.role in _SYSTEM]
    choice = reply.choices[0]
    return Digest(
        tape=exchange.tape,
        exchange=exchange.number,
        id=exchange.id,
        line=exchange.request.line,
        t_ns=exchange.request.t_ns if exchange.timed else None,
        end_ns=exchange.end.t_ns if exchange.end else None,
        end_line=exchange.end.line if exchange.end else None,
        watch=exchange.watch if exchange.timed else None,
        tap=Tap.APP if reply.from_app else exchange.tap,
        path=exchange.request.path,
        known=asked.known and bool(asked.history),
        dialect=reply.dialect,
        system=list(_prefixes(system))[-1],
        history=tuple(_heard(message) for message in said),
        prefixes=tuple(_prefixes(said)),
        forced=_is_forced(asked),
        whole=_is_whole(reply),
        text=_text_hash(choice.text),
        calls=tuple(_said(call) for call in choice.tool_calls),
        results=_results(asked),
        summary=_summary(reply, choice),
    )


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _text_hash(text: str) -> str:
    return _hash(text.strip()) if text.strip() else ""


def _prefixes(messages: Iterable[Message]) -> Iterator[str]:
    """A hash for every number of first messages, from none to all."""
    so_far = _hash()
    yield so_far
    for message in messages:
        so_far = _hash(so_far, message.digest)
        yield so_far


def _heard(message: Message) -> Heard:
    return Heard(
        role=message.role,
        text=_text_hash(message.text),
        calls=message.calls,
        call_id=message.call_id,
    )


def _said(call: ToolCall) -> SaidCall:
    return SaidCall(
        index=call.index,
        id=call.id,
        ids=call.ids,
        name=call.name,
        kind=call.kind,
        arguments=call.arguments,
        fragments=tuple(fragment.text for fragment in call.fragments),
        status=call.status,
    )


def _is_forced(asked: Asked) -> bool:
    if asked.tool_choice in _ANY:
        return len(asked.tools) == 1
    return asked.tool_choice not in _FREE


def _is_whole(reply: Reply) -> bool:
    """One answer, ended as announced, neither by an error nor by a limit."""
    regular = reply.terminated and reply.error is None and len(reply.choices) == 1
    return regular and finish_of(reply.choices[0]) not in _CUT


def _results(asked: Asked) -> tuple[str, ...]:
    found: list[str] = []
    for message in reversed(asked.history):
        if message.role in _ASSISTANT:
            break
        if message.call_id:
            found.insert(0, message.call_id)
    return tuple(found)


def _summary(reply: Reply, choice: Choice) -> str:
    parts = [reply.dialect, *([reply.model] if reply.model else [])]
    if choice.text:
        parts.append(f"{len(choice.text)} characters of text")
    if choice.tool_calls:
        names = ", ".join(call.name or "?" for call in choice.tool_calls)
        parts.append(f"{count(len(choice.tool_calls), 'call')}: {names}")
    if reply.error is not None:
        parts.append(f"error: {reply.error}")
    parts.append(f"finish {choice.finish_reason_raw or 'unknown'}")
    return "; ".join(parts)
