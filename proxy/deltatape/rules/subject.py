"""What there is in an exchange that rules are about.

A healthy exchange gives nearly no rule anything to look at: no anomaly, no observation, perhaps no
call. Asking each of them whether there is would cost more than all that the others do, so it is
looked up once what there is, and only those rules are asked that are about something of it.

A subject is a word: the code of an observation, the status of a call, the kind of an anomaly, what
a finish reason means, or a `Subject`. None is used for two things.
"""

import enum

from deltatape.rules._stray_text import has_signs
from deltatape.rules._usage import is_usual
from deltatape.rules.context import RuleContext
from deltatape.rules.finish import finish_of, is_late


class Subject(enum.StrEnum):
    """What is there or not."""

    CALLS = "calls"
    WRITTEN = "calls in text"
    APP = "an application's stream"
    RESULTS_DUE = "results are due"
    CHOICE = "a choice of tools that leaves less than any or none"
    FORMAT = "a format of the answer"
    STRAY = "signs of what is no text"
    MODELS = "two names of models"
    USAGE = "unusual counts of tokens"
    LATE = "content after the finish reason"
    CUT = "a transport that was cut"
    TIMES = "times"
    NO_TERMINAL = "no terminal event"
    STREAM_WANTED = "a stream was asked for"


def subjects_of(context: RuleContext) -> frozenset[str]:
    """What there is in the exchange, as `Rule.is_about` wants to know it."""
    exchange, reply = context.exchange, context.reply
    found: set[str] = {seen.code for seen in reply.observations}
    for anomaly in context.stream.anomalies:
        found.add(anomaly.kind)
    for choice in reply.choices:
        found.add(finish_of(choice))
        if choice.tool_calls:
            found.add(Subject.CALLS)
            found.update(call.status for call in choice.tool_calls)
        if choice.text_calls:
            found.add(Subject.WRITTEN)
        if choice.text and has_signs(choice.text):
            found.add(Subject.STRAY)
        if is_late(choice):
            found.add(Subject.LATE)
    for there, subject in (
        (reply.from_app, Subject.APP),
        (reply.results_due, Subject.RESULTS_DUE),
        (exchange.cut, Subject.CUT),
        (exchange.timed, Subject.TIMES),
        (not reply.terminated, Subject.NO_TERMINAL),
        (context.asked.stream, Subject.STREAM_WANTED),
        (context.asked.answer, Subject.FORMAT),
        (reply.usage and not is_usual(reply.usage), Subject.USAGE),
        (reply.model and context.asked.model not in (None, reply.model), Subject.MODELS),
        (context.asked.one_call or context.asked.must_call, Subject.CHOICE),
    ):
        if there:
            found.add(subject)
    return frozenset(found)
