"""Explanations that blame an app, and suspects, for tests of renderings."""

from dataclasses import replace

from deltatape.model.exchange import Exchange
from deltatape.model.explanation import Explanation
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.suspect import ClientMistake, ClientReading, ClientTrial, Suspect
from deltatape.why.explain import explain
from helpers.chat import FINISH
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, assistant, call, conversation, result

TOOLS = [{"type": "function", "function": {"name": "get"}}]
THROWN = "Unexpected end of JSON input"
SINGLE = ClientMistake(
    axis="key", value="single", says="keeps one call", fix="keep a call per index"
)
LATE = ClientMistake(axis="emit", value="late", says="waits", fix="do not wait")


def lost_arguments(name: str = "get", arguments: str = "") -> Explanation:
    """An app that repeats the call of its first reply with other arguments."""
    exchanges: list[Exchange] = conversation(
        (asks(USER, tools=TOOLS, tool_choice="auto"), [TEXT, *call(), FINISH]),
        (asks(USER, assistant(("c1", name, arguments)), result("c1", THROWN)), [TEXT, FINISH_TEXT]),
    )
    return explain(exchanges)


def suspect(name: str = "single-current-call", *, exact: bool = True, throws: str = "") -> Suspect:
    """A suspect with one mistake."""
    return Suspect(
        name=name,
        says="keeps one call where the stream has two",
        fix="keep a call per index",
        mistakes=(SINGLE,),
        exact=exact,
        made=ClientReading(
            calls=(RepeatedCall(id="c1", name="get", arguments=""),),
            errors=(throws,) if throws else (),
        ),
    )


def tried(name: str, *calls: RepeatedCall, throws: str = "", problem: str = "") -> ClientTrial:
    """A wrong client that makes these calls."""
    made = ClientReading(calls=calls, errors=(throws,) if throws else ())
    return ClientTrial(name=name, made=made, differs=True, problem=problem)


def accused(
    explanation: Explanation, *suspects: Suspect, tried: tuple[ClientTrial, ...] = ()
) -> Explanation:
    """`explanation` with suspects and clients."""
    return replace(explanation, suspects=suspects, tried=tried)
