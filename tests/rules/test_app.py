from deltatape.model.finding import Blame, Confidence
from deltatape.rules._app import Flaw, flawed
from deltatape.rules._base import MOST_ALIKE
from deltatape.rules.a001_event_without_name import EventWithoutName
from helpers.app import done, text, told
from helpers.contexts import context_of


def test_flaws_become_findings_with_the_event_and_the_last_counts_the_others() -> None:
    context = context_of(told(text("a"), done()))
    place = context.stream.events[0].place
    flaws = [Flaw(message=f"flaw {n}", event=0, place=place) for n in range(MOST_ALIKE + 2)]
    findings = list(flawed(EventWithoutName(), context, flaws, "a hint"))
    assert len(findings) == MOST_ALIKE
    assert findings[0].message == "flaw 0"
    assert findings[-1].message == "flaw 19 (and 2 more)"
    assert findings[0].evidence == '{"type": "text", "content": "a"}'
    assert (findings[0].blame, findings[0].confidence) == (Blame.UPSTREAM, Confidence.POSSIBLE)


def test_a_flaw_of_an_event_that_is_not_there_has_no_evidence() -> None:
    context = context_of(told(text("a"), done()))
    flaw = Flaw(message="m", event=99, place=context.stream.events[0].place)
    (finding,) = flawed(EventWithoutName(), context, [flaw], "a hint")
    assert finding.evidence == ""
