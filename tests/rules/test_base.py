from deltatape.model.exchange import Exchange
from deltatape.model.finding import Confidence
from deltatape.rules._base import MAX_MESSAGE, Claim, finding, label
from deltatape.rules.w004_event_not_json import EventNotJson
from helpers.chat import FINISH, calls, entry
from helpers.contexts import context_of
from helpers.exchanges import TEXT, call, pasted, timed


def claim(exchange: Exchange, message: str) -> str:
    given = Claim(message=message, hint="", blame=None, confidence=Confidence.LIKELY)
    return finding(EventNotJson(), context_of(exchange), given).message


def test_messages_are_escaped_and_limited() -> None:
    assert claim(pasted(TEXT), "a\x1bb") == "a\\x1bb"
    assert len(claim(pasted(TEXT), "x" * 5000)) == MAX_MESSAGE


def test_a_finding_without_place_has_no_line_span_or_time() -> None:
    given = Claim(message="m", hint="h", blame=None, confidence=Confidence.LIKELY)
    made = finding(EventNotJson(), context_of(timed((0.1, TEXT))), given)
    assert (made.line, made.span, made.t_ns, made.event) == (None, None, None, None)
    assert made.tape == "x.tape"


def test_times_of_what_was_not_taped_are_unknown() -> None:
    context = context_of(pasted(TEXT))
    place = context.stream.events[0].place
    given = Claim(message="m", hint="h", blame=None, confidence=Confidence.LIKELY, place=place)
    assert finding(EventNotJson(), context, given).t_ns is None
    assert context.seen is Confidence.LIKELY
    assert context_of(timed((0.1, TEXT))).seen is Confidence.PROVEN


def test_success_is_a_status_of_the_class_two_hundred() -> None:
    assert context_of(pasted(TEXT)).successful
    assert not context_of(pasted(TEXT, status=404)).successful
    assert not context_of(timed(framing=None)).successful


def test_events_are_found_by_number() -> None:
    context = context_of(pasted(TEXT))
    assert context.event(0) is context.stream.events[0]
    assert context.event(None) is context.event(7) is context.event(-1) is None


def test_a_call_is_called_by_index_and_name() -> None:
    named = context_of(pasted(*call(), FINISH)).reply.tool_calls[0]
    nameless = context_of(pasted(calls(entry(0, "c1", arguments="{}")))).reply.tool_calls[0]
    assert (label(named), label(nameless)) == ("call 0 (get)", "call 0")
