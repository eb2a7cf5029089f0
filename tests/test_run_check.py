"""What a run is held against: mistakes that are made again, and requests that are right at last."""

import copy
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from deltatape.model.exchange import Exchange, Tap
from deltatape.model.finding import Confidence
from deltatape.model.tape_summary import LogEntry, LogStream
from deltatape.run_check import Correction, RunCheck
from helpers import responses
from helpers.chat import FINISH
from helpers.exchanges import (
    FINISH_TEXT,
    TEXT,
    USER,
    asks,
    assistant,
    call,
    conversation,
    result,
)
from helpers.taped import taped
from helpers.watched import watched

Json = dict[str, object]
NS = 1_000_000_000

BOTH = [*call("get", '{"a":1}'), *call("get", '{"b":2}', index=1), FINISH]
"""A reply with two calls."""
SAYS = [TEXT, FINISH_TEXT]
RIGHT = assistant(("c1", "get", '{"a":1}'), ("c2", "get", '{"b":2}'))
"""What a right app makes of it."""
CHANGED = assistant(("c1", "get", '{"a":1}'), ("c2", "get", '{"b":'))
LOST = assistant(("c2", "get", '{"b":2}'))
FIRST_ONLY = assistant(("c1", "get", '{"a":1}'))
RESULTS = (result("c1", "one"), result("c2", "two"))
MORE: Json = {"role": "user", "content": "Well?"}


@dataclass
class Sending:
    """An answer that was sent as a whole."""

    reads_s: list[float] = field(default_factory=list)
    ended_s: float | None = None


class Run:
    """A run against a tape, as a player would tell of it."""

    def __init__(self, *exchanges: Exchange, **how: object) -> None:
        self.exchanges = exchanges
        self.check = RunCheck(exchanges, **how)  # type: ignore[arg-type]
        self.now_s = 100.0
        self.spent: set[int] = set()

    def play(
        self,
        position: int,
        request: Json | None = None,
        correction: Correction | None = None,
        *,
        reads: int | None = None,
        ended: bool = True,
    ) -> None:
        """An exchange is played for a request, by default for its own."""
        recorded = self.exchanges[position]
        body = recorded.request.content if request is None else json.dumps(request).encode()
        self.now_s += 1
        came_s = self.now_s
        sending = Sending()
        for _ in recorded.reads[:reads]:
            self.now_s += 0.01
            sending.reads_s.append(self.now_s)
        sending.ended_s = self.now_s if ended else None
        self.spent.add(position)
        self.check.enter(
            body,
            came_s,
            recorded,
            played=recorded,
            sending=sending,
            position=position,
            correction=correction,
        )

    def ask(self, request: Json) -> Correction | None:
        """A request that is not on the tape; what is played for it is."""
        self.now_s += 1
        body = json.dumps(request).encode()
        here = tuple(range(len(self.exchanges)))
        found = self.check.corrected(body, self.now_s, here, frozenset(self.spent))
        if found is not None and found.position is not None and not found.ended:
            self.play(found.position, request, found)
        else:
            self.check.enter(body, self.now_s, self.exchanges[0], correction=found)
        return found

    @property
    def codes(self) -> list[str]:
        """Of the mistakes for which the run fails."""
        return [each.finding.code for each in self.check.mistakes() if each.fails]


def tape(second: Json, *more: tuple[Json, Sequence[object]]) -> list[Exchange]:
    """Two calls, what an app made of them, and what came then."""
    return conversation((asks(USER), BOTH), (second, SAYS), *more)


CHANGING = tape(asks(USER, CHANGED, *RESULTS))
MENDED = asks(USER, RIGHT, *RESULTS)


def corrected(exchanges: Sequence[Exchange], request: Json, **how: object) -> Correction | None:
    """What becomes of a second request."""
    run = Run(*exchanges, **how)
    run.play(0)
    return run.ask(request)


@pytest.mark.parametrize(
    ("second", "code"),
    [
        (asks(USER, CHANGED, *RESULTS), "C002"),
        (asks(USER, LOST, RESULTS[1]), "C001"),
    ],
)
def test_a_mistake_that_is_made_again_is_found_in_the_run(second: Json, code: str) -> None:
    run = Run(*tape(second))
    run.play(0)
    assert run.codes == []
    run.play(1)
    assert set(run.codes) == {code}
    (first, *_) = run.check.mistakes()
    assert (first.request, first.recorded.number) == (2, 2)


def test_what_the_app_printed_on_the_tape_counts_in_the_run() -> None:
    dropped = conversation(
        (asks(USER), [TEXT, *call("get"), FINISH]),
        (asks(USER, {"role": "assistant", "content": "Hello"}, MORE), SAYS),
    )
    line = b"Invalid tool call JSON: Unexpected end of input"
    printed = LogEntry(t_ns=NS, stream=LogStream.STDERR, line=line)
    assert dropped[0].tape == dropped[1].tape
    without, run = Run(*dropped), Run(*dropped, logs={dropped[0].tape: [printed]})
    for each in (without, run):
        each.play(0)
        each.play(1)
    assert (without.codes, run.codes) == ([], ["C001"])
    (mistake,) = run.check.mistakes()
    assert mistake.finding.confidence is Confidence.LIKELY
    assert mistake.finding.message.endswith("its assistant message has no call at all")
    assert mistake.finding.excluded[0].because == (
        f"on the tape, after this reply the app printed {line.decode()!r}"
    )


@pytest.mark.parametrize(
    ("second", "code", "mended"),
    [
        (asks(USER, CHANGED, *RESULTS), "C002", MENDED),
        (asks(USER, LOST, RESULTS[1]), "C001", MENDED),
        (asks(USER, LOST, RESULTS[1], MORE), "C001", asks(USER, RIGHT, *RESULTS, MORE)),
    ],
)
def test_a_request_is_accepted_that_is_right_where_the_recorded_one_is_wrong(
    second: Json, code: str, mended: Json
) -> None:
    run = Run(*tape(second))
    run.play(0)
    found = run.ask(mended)
    assert found == Correction(position=1, codes=(code,), ended=False)
    assert run.codes == []


def test_the_results_of_calls_that_were_wrong_may_be_others() -> None:
    second = result("c2", "what the tool says, now that it runs")
    assert corrected(CHANGING, asks(USER, RIGHT, RESULTS[0], second)) is not None


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(asks(USER, RIGHT, *RESULTS, temperature=1), id="another member"),
        pytest.param(asks({**USER, "content": "Else?"}, RIGHT, *RESULTS), id="another question"),
        pytest.param(asks(USER, RIGHT, *RESULTS, MORE), id="one more message"),
        pytest.param(
            asks(USER, RIGHT, result("c1", "other"), RESULTS[1]), id="the result of a right call"
        ),
        pytest.param(asks(USER, LOST, RESULTS[1]), id="another mistake"),
        pytest.param(
            asks(USER, assistant(("c1", "get", '{"a":1}'), ("c2", "get", '{"b":3}')), *RESULTS),
            id="other arguments",
        ),
        pytest.param(asks(USER, MORE), id="no word of the reply"),
        pytest.param(asks(MORE), id="another conversation"),
    ],
)
def test_a_request_that_differs_elsewhere_is_not_accepted(request_: Json) -> None:
    assert corrected(CHANGING, request_) is None


@pytest.mark.parametrize(
    "request_",
    [
        asks(USER, RIGHT, result("c1", "other"), RESULTS[1]),
        asks(USER, RIGHT, *RESULTS, MORE),
        asks(USER, CHANGED, *RESULTS),
        asks(USER, LOST, RESULTS[1]),
    ],
)
def test_on_a_tape_without_a_mistake_nothing_is_accepted(request_: Json) -> None:
    assert corrected(tape(MENDED), request_) is None


def test_nothing_is_accepted_before_anything_was_played() -> None:
    assert Run(*CHANGING).ask(MENDED) is None


def test_a_body_that_is_not_json_is_not_accepted() -> None:
    run = Run(*CHANGING)
    run.play(0)
    assert run.check.corrected(b"hello", 200.0, (0, 1), frozenset({0})) is None


def test_what_the_app_did_with_a_reply_that_it_left_is_not_a_mistake() -> None:
    run = Run(*tape(asks(USER, FIRST_ONLY, RESULTS[0])))
    run.play(0, reads=5)
    run.play(1)
    assert run.codes == []


def test_a_reply_that_still_comes_is_not_held_against_the_app() -> None:
    run = Run(*tape(asks(USER, FIRST_ONLY, RESULTS[0])))
    run.play(0, reads=5, ended=False)
    run.play(1)
    assert run.codes == []


def test_codes_that_are_ignored_neither_fail_nor_let_anything_pass() -> None:
    run = Run(*CHANGING, ignored=("C002",))
    run.play(0)
    run.play(1)
    assert run.codes == []
    assert corrected(CHANGING, MENDED, ignored=("C",)) is None


def test_volatile_fields_may_differ_in_a_corrected_request() -> None:
    exchanges = tape(asks(USER, CHANGED, *RESULTS, trace=1))
    mended = {**MENDED, "trace": 2}
    assert corrected(exchanges, mended) is None
    assert corrected(exchanges, mended, volatile=("trace",)) is not None


def on(day: str, *rest: Json) -> Json:
    """A request with the day in its prompt."""
    return asks({"role": "system", "content": f"Today is {day}."}, USER, *rest)


def test_parts_of_texts_may_differ_in_a_corrected_request() -> None:
    def answered(pid: int) -> tuple[Json, Json]:
        return result("c1", f"pid {pid} runs"), RESULTS[1]

    exchanges = conversation(
        (on("2026-11-26"), BOTH), (on("2026-11-26", CHANGED, *answered(12)), SAYS)
    )
    mended = {**on("2026-12-03", RIGHT, *answered(345)), "trace": "at 2026-12-03"}
    for volatile, found in (((), False), (("date", "pid", "trace"), True)):
        run = Run(*exchanges, volatile=volatile)
        run.play(0, on("2026-12-03"))
        assert (run.ask(mended) is not None) is found


@pytest.mark.parametrize(("repeated", "codes"), [("2026-11-26", []), ("2026-11", ["C002"])])
def test_calls_are_read_back_without_masks(repeated: str, codes: list[str]) -> None:
    delivered = [*call("get", '{"on":"2026-11-26"}'), FINISH]
    arguments = f'{{"on":"{repeated}"}}' if not codes else f'{{"on":"{repeated}'
    second = asks(USER, assistant(("c1", "get", arguments)), RESULTS[0])
    run = Run(*conversation((asks(USER), delivered), (second, SAYS)), volatile=("date",))
    run.play(0)
    run.play(1)
    assert run.codes == codes


# How a conversation goes on that is another one than on the tape.


def second_call(place: int) -> list[object]:
    """A reply with one call."""
    return [
        each
        for chunk in call("get", '{"a":1}')
        for each in [json.loads(json.dumps(chunk).replace('"c1"', f'"d{place}"'))]
    ] + [FINISH]


def emptied(place: int) -> tuple[Json, Json]:
    """What an app makes of `second_call` that loses the arguments, and its result."""
    return assistant((f"d{place}", "get", "")), result(f"d{place}")


ASKED_AGAIN = conversation(
    (asks(USER), BOTH),
    (asks(USER, LOST, RESULTS[1]), second_call(2)),
    (asks(USER, LOST, RESULTS[1], *emptied(2)), second_call(3)),
)
"""An app that loses a call, and then the arguments of another one."""


def test_what_follows_is_played_in_its_order_and_then_the_tape_ends() -> None:
    run = Run(*ASKED_AGAIN)
    run.play(0)
    first = [USER, RIGHT, *RESULTS]
    found = run.ask(asks(*first))
    assert found is not None
    assert found.position == 1
    second = [*first, assistant(("d2", "get", '{"a":1}')), result("d2")]
    found = run.ask(asks(*second))
    assert found is not None
    assert found.position == 2
    third = [*second, assistant(("d3", "get", '{"a":1}')), result("d3")]
    found = run.ask(asks(*third))
    assert found is not None
    assert found.position is None
    assert found.ended
    assert run.codes == []
    again = run.ask(asks(*third, assistant(text="It broke off."), MORE))
    assert again is not None
    assert again.ended


def test_what_follows_on_the_mistake_need_not_be_played() -> None:
    run = Run(*ASKED_AGAIN)
    run.play(0)
    assert run.check.left_behind == frozenset()
    run.ask(MENDED)
    assert run.check.left_behind == {1, 2}


def test_a_second_mistake_of_the_tape_still_fails() -> None:
    run = Run(*ASKED_AGAIN)
    run.play(0)
    run.ask(MENDED)
    found = run.ask(asks(USER, RIGHT, *RESULTS, *emptied(2)))
    assert found is None
    assert run.codes == ["C002"]


def test_a_second_mistake_gets_no_answer_to_what_came_after_it() -> None:
    lost = (USER, *emptied(1), *emptied(3))
    more = conversation(
        *((asks(*lost[:length]), second_call(length)) for length in (1, 3, 5)),
        (asks(*lost, assistant(("d5", "get", "no")), result("d5")), SAYS),
    )
    run = Run(*more)
    run.play(0)
    mended = (USER, assistant(("d1", "get", '{"a":1}')), result("d1"))
    assert run.ask(asks(*mended)) is not None
    assert run.ask(asks(*mended, *emptied(3))) is None
    assert run.codes == ["C002"]


def test_a_question_that_is_not_on_the_tape_is_missed_there_too() -> None:
    run = Run(*ASKED_AGAIN)
    run.play(0)
    run.ask(MENDED)
    called = assistant(("d2", "get", '{"a":1}'))
    other: Json = {"role": "user", "content": "Something else."}
    assert run.ask(asks(USER, RIGHT, *RESULTS, called, result("d2"), other)) is None


def test_changed_answers_to_other_questions_are_not_blamed() -> None:
    orphans = conversation(
        (asks(USER), BOTH),
        (asks(USER, *RESULTS), second_call(2)),
        (asks(USER, *RESULTS, result("d2"), MORE), SAYS),
    )
    run = Run(*orphans)
    run.play(0)
    assert run.ask(MENDED) is not None
    found = run.ask(asks(USER, RIGHT, *RESULTS, *emptied(2), MORE))
    assert found is not None
    assert run.codes == []
    assert [each.fails for each in run.check.mistakes()] == [False]


REFUSAL = b'{"error": {"message": "no"}}'


def test_a_refusal_of_the_wrong_request_is_not_an_answer_to_the_right_one() -> None:
    first, second = CHANGING
    assert second.response is not None
    assert second.end is not None
    refused = replace(
        second,
        response=replace(second.response, status=400),
        reads=(second.reads[0]._replace(data=REFUSAL),),
        end=replace(second.end, bytes=len(REFUSAL)),
    )
    found = corrected((first, refused), MENDED)
    assert found == Correction(position=1, codes=("C002",), ended=True)


def test_behind_the_end_of_the_tape_nothing_is_held_against_the_app() -> None:
    run = Run(*silent())
    run.play(0)
    assert run.ask(MENDED) is not None
    lost = [USER, RIGHT, *RESULTS, assistant(text="It broke off."), MORE]
    found = run.ask(asks(*lost))
    assert found is not None
    assert found.ended
    bare = run.ask(asks(*lost, assistant(("x1", "get", "{}")), result("c1"), result("c1")))
    assert bare is not None
    assert run.codes == []
    assert run.check.left_behind == frozenset()


def test_what_goes_on_from_a_missed_request_is_missed_too() -> None:
    run = Run(*CHANGING)
    run.play(0)
    assert run.ask(asks(USER, MORE)) is None
    assert run.ask(asks(USER, MORE, MORE)) is None


def test_a_corrected_request_is_answered_once() -> None:
    run = Run(*CHANGING)
    run.play(0)
    assert run.ask(MENDED) is not None
    assert run.ask(MENDED) is None


def test_who_asks_for_ever_is_not_looked_at_for_ever() -> None:
    run = Run(*CHANGING)
    run.play(0)
    for _ in range(102):
        assert run.ask(asks(MORE)) is None
    assert run.ask(MENDED) is None


def test_what_is_not_json_stands_on_a_tape_beside_the_rest() -> None:
    first, second = CHANGING
    other = replace(first, number=3, request=replace(first.request, body=b"hello"))
    assert corrected((first, second, other), MENDED) is not None


# What has no next request on the tape.


OTHER: Json = {"role": "user", "content": "And elsewhere?"}


def silent() -> list[Exchange]:
    """A tape on which nothing comes back for a call, but for one of the same tool elsewhere."""
    elsewhere = asks(OTHER, assistant(("c6", "get", '{"a":1}')), result("c6"))
    exchanges = conversation(
        (asks(USER), BOTH),
        (asks(OTHER), [*call("get", index=5), FINISH]),
        (elsewhere, SAYS),
    )
    return list(watched(exchanges, 400.0, stop="child-exit", exit_code=0))


def test_results_that_were_wrong_may_be_others() -> None:
    both = [*call("get", '{"city":"Lisbon"}'), *call("get", '{"city":"Porto"}', index=1), FINISH]
    again = [*call("get", '{"city":"Lisbon"}', 2), *call("get", '{"city":"Porto"}', 3), FINISH]
    said, said_again = (
        assistant((one, "get", '{"city":"Lisbon"}'), (other, "get", '{"city":"Porto"}'))
        for one, other in (("c1", "c2"), ("c3", "c4"))
    )
    one, other = '{"city":"Lisbon","t":9}', '{"city":"Porto","t":21}'
    before = (USER, said, result("c1", one), result("c2", other))
    swapped = asks(*before, said_again, result("c3", other), result("c4", one))
    exchanges = conversation((asks(USER), both), (asks(*before), again), (swapped, SAYS))
    run = Run(*exchanges)
    for position in range(3):
        run.play(position)
    assert run.codes == ["C015"]
    run = Run(*exchanges)
    run.play(0)
    run.play(1)
    found = run.ask(asks(*before, said_again, result("c3", one), result("c4", other)))
    assert found is not None
    assert found.codes == ("C015",)


def test_a_silence_fails_as_long_as_nothing_comes_back() -> None:
    run = Run(*silent())
    assert list(run.check.mistakes()) == []
    run.play(0)
    (mistake,) = run.check.mistakes()
    assert (mistake.finding.code, mistake.silent, mistake.fails) == ("D003", True, True)
    found = run.ask(MENDED)
    assert found == Correction(position=None, codes=("D003",), ended=True)
    assert run.codes == []


def test_a_silence_is_not_ended_by_a_wrong_request() -> None:
    run = Run(*silent())
    run.play(0)
    assert run.ask(asks(USER, LOST, RESULTS[1])) is None
    assert run.codes == ["C001"]


def test_a_reply_that_was_not_sent_to_its_end_leaves_no_silence() -> None:
    run = Run(*silent())
    run.play(0, reads=3, ended=False)
    assert run.codes == []


def test_what_is_wrong_at_the_endpoint_of_the_app_is_reported_as_unseen() -> None:
    events = b'data: {"type": "tool_call", "name": null, "arguments": 10}\n\n'
    endpoint = taped(
        ((10, events),), body={"messages": [USER], "stream": True}, target=b"/api/chat", number=2
    )
    (first,) = conversation((asks(USER), BOTH))
    run = Run(first, elsewhere=(replace(endpoint, tap=Tap.APP),))
    run.play(0)
    assert "A001" in {each.code for each in run.check.unseen()}
    found = run.ask(MENDED)
    assert found is not None
    assert "A001" in found.codes
    assert found.ended
    ignoring = Run(first, elsewhere=(replace(endpoint, tap=Tap.APP),), ignored=("A",))
    assert ignoring.check.unseen() == ()


# Other ways to say it.


def other_dialect(name: str) -> tuple[Json, bytes, bytes, Json, Json]:
    """A first request, its target, its reply, a wrong and a right request after it."""
    if name == "anthropic":
        events: list[Json] = [
            {"type": "message_start", "message": {"id": "m1", "model": "m", "content": []}},
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "tool_use", "id": "t1", "name": "get", "input": {}},
            },
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": '{"a": 1}'},
            },
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
            {"type": "message_stop"},
        ]
        reply = b"".join(
            b"event: %b\ndata: %b\n\n" % (str(each["type"]).encode(), json.dumps(each).encode())
            for each in events
        )
        first: Json = {"model": "m", "stream": True, "messages": [USER]}
        use: Json = {"type": "tool_use", "id": "t1", "name": "get", "input": {"a": 1}}
        back = {"type": "tool_result", "tool_use_id": "t1", "content": "one"}
        right = copy.deepcopy(first)
        right["messages"] = [
            USER,
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [back]},
        ]
        wrong = copy.deepcopy(right)
        wrong["messages"][1]["content"][0]["input"] = {}  # type: ignore[index]
        wrong["messages"][2]["content"][0]["content"] = "no a"  # type: ignore[index]
        return first, b"/v1/messages", reply, wrong, right
    chunk = {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [{"functionCall": {"name": "get", "args": {"a": 1}}}],
                },
                "finishReason": "STOP",
            }
        ]
    }
    asked: Json = {"role": "user", "parts": [{"text": "What is it?"}]}
    first = {"contents": [asked]}
    made = {"role": "model", "parts": [{"functionCall": {"name": "get", "args": {"a": 1}}}]}
    answer = {"functionResponse": {"name": "get", "response": {"x": 1}}}
    right = {"contents": [asked, made, {"role": "user", "parts": [answer]}]}
    wrong = copy.deepcopy(right)
    wrong["contents"][1]["parts"][0]["functionCall"]["args"] = {}  # type: ignore[index]
    wrong["contents"][2]["parts"][0]["functionResponse"]["response"] = {"x": 2}  # type: ignore[index]
    target = b"/v1beta/models/m:streamGenerateContent?alt=sse"
    return first, target, b"data: %b\n\n" % json.dumps(chunk).encode(), wrong, right


@pytest.mark.parametrize("name", ["anthropic", "gemini"])
def test_other_dialects_are_corrected_too(name: str) -> None:
    first, target, reply, wrong, right = other_dialect(name)
    exchanges = (
        taped(((10, reply),), body=first, target=target, number=1),
        taped(((10, reply),), body=wrong, target=target, number=2),
    )
    exchanges = (
        exchanges[0],
        replace(exchanges[1], request=replace(exchanges[1].request, t_ns=10**10, t_end_ns=10**10)),
    )
    run = Run(*exchanges)
    run.play(0)
    run.play(1)
    assert run.codes
    found = corrected(exchanges, right)
    assert found is not None
    assert found.position == 1


def test_a_stored_conversation_is_corrected_too() -> None:
    calls = (*responses.call(), *responses.call('{"a":2}', 1, 2))
    items = (responses.function('{"a":1}'), responses.function('{"a":2}', 2))
    reply = responses.sse(responses.created(), *calls, responses.ended(*items))
    first: Json = {"model": "m", "stream": True, "input": [USER]}
    one_of, two_of = (
        {"type": "function_call_output", "call_id": f"call_{number}", "output": "one"}
        for number in (1, 2)
    )
    goes_on: Json = {"model": "m", "stream": True, "previous_response_id": "resp_fake"}
    target = b"/v1/responses"
    one = taped(((10, reply),), body=first, target=target, number=1)
    two = taped(((10, reply),), body={**goes_on, "input": [two_of]}, target=target, number=2)
    exchanges = (one, replace(two, request=replace(two.request, t_ns=10**10, t_end_ns=10**10)))
    run = Run(*exchanges)
    run.play(0)
    run.play(1)
    assert run.codes == ["C001"]
    found = corrected(exchanges, {**goes_on, "input": [one_of, two_of]})
    assert found is not None
    assert found.position == 1


def test_a_run_is_held_against_compressed_requests_of_the_tape() -> None:
    requests = [
        replace(
            each.request,
            headers=((b"Content-Encoding", b"gzip"),),
            body=gzip.compress(each.request.body),
        )
        for each in CHANGING
    ]
    packed = [replace(each, request=one) for each, one in zip(CHANGING, requests, strict=True)]
    run = Run(*packed)
    run.play(0, asks(USER))
    run.play(1, asks(USER, CHANGED, *RESULTS))
    assert run.codes == ["C002"]
    accepted = corrected(packed, MENDED)
    assert accepted is not None
    assert accepted.position == 1
