"""Whether what a parser of the application says is untrue of the calls that were delivered."""

from collections.abc import Mapping, Sequence

from deltatape.model.digest import SaidCall
from deltatape.model.parser_error import Means, ParserError
from deltatape.model.reply import CallKind, CallStatus
from deltatape.wire.json_value import parse

_WHOLE = frozenset({CallStatus.COMPLETE, CallStatus.EMPTY_OK})


def is_untrue(error: ParserError, about: Sequence[SaidCall]) -> bool:
    """Whether the wire had what the parser misses, in each of the calls.

    What a tool refuses may well be true.
    """
    if error.means is Means.REFUSED:
        return False
    return all(
        call.status in _WHOLE
        and (error.means is not Means.DROPPED or bool(call.name))
        and not _has_broken_deltas(call)
        for call in about
    )


def _has_broken_deltas(call: SaidCall) -> bool:
    """Whether the deltas are no JSON, which the last event mended: a client may well take these."""
    if call.kind is CallKind.TEXT:
        return False
    joined = "".join(call.fragments)
    return bool(joined) and joined != call.arguments and parse(joined).error is not None


def is_untrue_of_call(
    error: ParserError, about: Sequence[SaidCall], *, unread: bool = False
) -> bool:
    """Whether an untrue error can be about nothing but the calls themselves.

    It speaks of them or of their arguments; or a parser was given no text, there were no argument
    bytes, and the application could not read that (`unread`). Where an argument is itself broken
    JSON, the tool may have read that.
    """
    speaks = error.about_call or (unread and is_of_nothing(error, about))
    return speaks and not any(map(_holds_broken_json, about))


def is_of_nothing(error: ParserError, about: Sequence[SaidCall]) -> bool:
    """Whether a parser was given no text, and there were no argument bytes."""
    nothing = error.means in (Means.NOTHING, Means.CUT)
    return nothing and all(not call.arguments for call in about)


def _holds_broken_json(call: SaidCall) -> bool:
    value = parse(call.arguments.strip() or "{}").value
    texts = value.values() if isinstance(value, Mapping) else ()
    return any(
        isinstance(text, str) and text.lstrip()[:1] in ("{", "[") and parse(text).error is not None
        for text in texts
    )
