"""What there is in an exchange that rules are about.

A healthy exchange gives nearly no rule anything to look at: no anomaly, no observation, perhaps no
call. Asking each of them whether there is would cost more than all that the others do, so it is
looked up once what there is, and only those rules are asked that have something of it to look at.

A subject is a word: the code of an observation, the status of a call, the kind of an anomaly, what
a finish reason means, or a `Subject`. None is used for two things.
"""

import enum
from collections.abc import Mapping

from deltatape.model.reply import CallStatus
from deltatape.model.stream import AnomalyKind
from deltatape.rules._base import RuleContext
from deltatape.rules._stray_text import has_signs
from deltatape.rules._usage import is_usual
from deltatape.rules.finish import Finish, finish_of, is_late


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


_DONE = CallStatus.COMPLETE

ABOUT: Mapping[str, frozenset[str]] = {
    "W001": frozenset({AnomalyKind.UNTERMINATED_EVENT}),
    "W002": frozenset({AnomalyKind.INVALID_UTF8}),
    "W003": frozenset({AnomalyKind.BYTE_ORDER_MARK}),
    "W005": frozenset({Subject.STREAM_WANTED}),
    "W006": frozenset({Subject.CUT}),
    "W007": frozenset({Subject.TIMES}),
    "W009": frozenset({AnomalyKind.BAD_CONTENT_CODING, AnomalyKind.TOO_LARGE}),
    "W010": frozenset({AnomalyKind.BAD_MESSAGE}),
    "S001": frozenset({Subject.NO_TERMINAL}),
    "S002": frozenset({Finish.STOP}),
    "S003": frozenset({Finish.TOOLS}),
    "S009": frozenset({Finish.LENGTH, Finish.FILTER}),
    "S010": frozenset({"S010", Subject.LATE}),
    "S011": frozenset({Subject.MODELS}),
    "S012": frozenset({Subject.USAGE}),
    "S013": frozenset({Subject.FORMAT}),
    "S014": frozenset({Subject.STRAY}),
    "T001": frozenset({CallStatus.EMPTY_SUSPECT}),
    "T002": frozenset({CallStatus.MALFORMED, _DONE, Subject.WRITTEN}),
    "T003": frozenset({CallStatus.TRUNCATED}),
    "T004": frozenset({CallStatus.NO_NAME, CallStatus.ORPHAN}),
    "T006": frozenset({"T006", CallStatus.NOT_OBJECT, CallStatus.DOUBLE_ENCODED}),
    "T007": frozenset({Subject.CALLS}),
    "T008": frozenset({_DONE}),
    "T016": frozenset({CallStatus.EXTRA_DATA, Subject.WRITTEN}),
    "T018": frozenset({Subject.WRITTEN}),
    "T019": frozenset({Subject.WRITTEN}),
    "T020": frozenset({"T020", _DONE}),
    "T022": frozenset({_DONE}),
    "T023": frozenset({_DONE}),
    "T024": frozenset({Subject.CALLS}),
    "T025": frozenset({Subject.CHOICE}),
    "T027": frozenset({_DONE}),
    "A001": frozenset({Subject.APP}),
    "A002": frozenset({Subject.APP}),
    "A003": frozenset({Subject.RESULTS_DUE}),
    "A004": frozenset({"A004", Subject.APP}),
    "A006": frozenset({Subject.APP}),
    "D001": frozenset({Subject.TIMES}),
    "D004": frozenset({Subject.TIMES}),
    "D005": frozenset({Subject.TIMES}),
}
"""By code of a rule, the subjects of which one must be there for it to report anything."""

OF_OBSERVATIONS = frozenset(
    {"W004", "W008", "S004", "S006", "S007", "S008", "T005", "T009", "T010", "T011", "T012"}
    | {"T013", "T014", "T015", "T017", "T021", "A005"}
)
"""Codes of rules that report what was observed under their own code, and nothing else."""


def is_about(code: str, subjects: frozenset[str]) -> bool:
    """Whether the rule `code` may have something to report where there are these subjects."""
    if code in OF_OBSERVATIONS:
        return code in subjects
    wanted = ABOUT.get(code)
    return wanted is None or not wanted.isdisjoint(subjects)


def subjects_of(context: RuleContext) -> frozenset[str]:
    """What there is in the exchange, as `is_about` wants to know it."""
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
