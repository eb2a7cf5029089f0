"""Verdicts on tapes and on an app's own answers, through `tell`, which gives them."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

from deltatape.model.exchange import End, EndReason, Exchange, Read, Source, Tap
from deltatape.why.explain import explain
from helpers import app
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import (
    FINISH_TEXT,
    TEXT,
    USER,
    asks,
    assistant,
    call,
    conversation,
    from_bytes,
    result,
)

ANSWERED = asks(USER, assistant(("c1", "get", '{"a":1}')), result("c1"))
HEALTHY = ((asks(USER), [*call(), FINISH]), (ANSWERED, [TEXT, FINISH_TEXT]))
NAMELESS = [calls(entry(0, "c1", arguments="{}")), FINISH]


def page(upstream: Exchange, *frames: object) -> Exchange:
    """What the app told its page meanwhile."""
    shown = replace(
        app.told(*frames), tap=Tap.APP, number=9, end=upstream.end, source=Source.GATEWAY
    )
    return replace(shown, request=replace(shown.request, t_ns=upstream.request.t_ns))


def summary(tape: Sequence[Exchange], number: int | None = None) -> str:
    return explain(tape, number).verdict.summary


def test_a_tape_without_findings_is_shown_as_a_whole() -> None:
    verdict = explain(conversation(*HEALTHY)).verdict
    assert verdict.healthy
    assert verdict.summary.startswith(
        "Both replies arrived complete. Later requests repeat 1 of them"
    )
    alone = explain(conversation((asks(USER), [TEXT, FINISH_TEXT]))).verdict
    assert alone.summary.startswith("The reply arrived complete. No request followed")
    three = conversation(*HEALTHY, (asks({"role": "user", "content": "Hm."}), [TEXT, FINISH_TEXT]))
    assert summary(three).startswith("All 3 replies arrived complete.")


def test_one_exchange_of_it_is_shown_as_such() -> None:
    verdict = explain(conversation(*HEALTHY), 2).verdict
    assert verdict.healthy
    assert verdict.summary.startswith("No defect found: 5 characters of text arrived")


def test_a_tape_that_leaves_something_open_is_not_told_as_healthy() -> None:
    unanswered = conversation(HEALTHY[0])
    assert not explain(unanswered).verdict.healthy
    going = [replace(conversation(HEALTHY[1])[0], open=True, end=None)]
    assert not explain(going).verdict.healthy
    assert not explain(conversation((asks(USER), []))).verdict.healthy


def test_an_error_that_the_page_is_told_has_its_cause_behind_the_app() -> None:
    (upstream,) = conversation((asks(USER), NAMELESS))
    told = page(upstream, app.text("I look."), {"type": "error", "content": "no name"})
    verdict = explain([upstream, told], 9).verdict
    assert verdict.blame == "upstream"
    assert verdict.summary.startswith("The app sent its page an error; the cause is #1: call 0")
    assert explain([told, upstream]).exchange == 1


def test_an_error_of_the_app_alone_is_its_own() -> None:
    upstream, later = conversation(*HEALTHY)
    told = page(upstream, app.text("I look."), {"type": "error", "content": "no database"})
    assert explain([upstream, later, told], 9).verdict.blame == "app"
    assert "no database" in summary([upstream, later, told], 9)
    assert "Nothing on the provider's side explains it." in summary([upstream, later, told], 9)


def test_an_error_of_the_app_without_the_providers_side_blames_nobody() -> None:
    (upstream,) = conversation((asks(USER), NAMELESS))
    told = page(upstream, app.text("I look."), {"type": "error", "content": "no database"})
    assert explain([told]).verdict.blame is None


def test_an_error_that_the_provider_gave_explains_what_the_page_is_told() -> None:
    key = {"error": {"message": "Incorrect API key provided"}}
    (upstream,) = conversation((asks(USER), [key]))
    assert upstream.response
    refused = replace(upstream, response=replace(upstream.response, status=401))
    told = page(upstream, app.text("I look."), {"type": "error", "content": "no key"})
    verdict = explain([refused, told], 9).verdict
    assert verdict.blame is None
    assert verdict.summary.startswith("The app sent its page an error; the cause is #1:")


def test_without_times_nothing_went_on_meanwhile() -> None:
    (upstream,) = conversation((asks(USER), NAMELESS))
    shown = app.told(app.text("I look."), {"type": "error", "content": "no name"})
    assert explain([replace(shown, tap=Tap.APP, number=9), upstream]).exchange == 9


def test_a_fact_that_would_accuse_the_app_decides_nothing() -> None:
    tools = [{"type": "function", "function": {"name": "get"}}]
    tape = conversation(
        (asks(USER, tools=tools), [*call(), FINISH]), (ANSWERED, [TEXT, FINISH_TEXT])
    )
    explanation = explain(tape)
    assert {each.code for each in explanation.findings} == {"C011"}
    assert explanation.verdict.blame is None


def test_an_error_of_the_app_is_asked_of_the_last_call_where_nothing_is_found() -> None:
    explanation = explain(conversation(*HEALTHY), errors=("Unexpected end of JSON input",))
    assert explanation.exchange == 1
    assert explanation.verdict.blame == "app"


def limited(*pauses_s: float, retry_after: bytes = b"1") -> list[Exchange]:
    """Requests that are all refused with status 429, and the pauses between them."""
    said = b'{"error":{"message":"Rate limit."}}'
    refused = from_bytes(said, asks(USER), 429, "application/json")
    assert refused.response
    head = replace(refused.response, headers=((b"retry-after", retry_after),), t_ns=0)
    tape, t_ns = [], 0
    for number, pause_s in enumerate((0.0, *pauses_s), 1):
        t_ns += round(pause_s * 1e9)
        tape.append(
            replace(
                refused,
                number=number,
                source=Source.GATEWAY,
                request=replace(refused.request, t_ns=t_ns),
                response=replace(head, t_ns=t_ns),
                reads=(Read(t_ns=t_ns, data=said, boundaries=None, line=None),),
                end=End(
                    t_ns=t_ns,
                    reason=EndReason.COMPLETE,
                    bytes=len(said),
                    sha256=sha256(said).hexdigest(),
                    detail="",
                    recorder={},
                    line=None,
                ),
            )
        )
    return tape


def test_attempts_that_all_fail_tell_whether_they_waited_as_asked() -> None:
    early = explain(limited(0.05, 0.05)).verdict
    assert early.fix.startswith("the app asked again after 0.05 s, although retry-after asks for 1")
    patient = explain(limited(1.0, 2.0)).verdict
    assert patient.fix.startswith("the app waited for 1 s, as retry-after asks, and was refused")
    for tape in (limited(), limited(1.0, retry_after=b"soon")):
        assert explain(tape).verdict.fix.startswith("a later attempt may succeed")


def test_a_client_that_leaves_at_the_finish_reason_may_miss_what_follows() -> None:
    first, second = conversation(*HEALTHY)
    assert first.end
    left = replace(first, end=replace(first.end, reason=EndReason.CLIENT_CLOSED))
    assert left.end
    body = b"".join(each.data for each in first.reads).replace(b"data: [DONE]\n\n", b"")
    short = replace(left.end, bytes=len(body), sha256=sha256(body).hexdigest())
    early = replace(
        left, end=short, reads=(first.reads[0]._replace(data=body, boundaries=(len(body),)),)
    )
    says = "The client left before the end of the stream: what came after the finish reason"
    assert says in summary([early, second], 1)
    assert says not in summary([left, second], 1)
