"""Scenes about applications: their own events, dead zones, conversations. Rules A, D and C."""

from dataclasses import replace

from deltatape.model.exchange import EndReason, Tap
from helpers import exchanges, responses
from helpers.app import available, call, done, output, result, text
from helpers.chat import FINISH, choice, sse
from helpers.scenes import (
    DONE,
    HEALTHY,
    STOP,
    TEXT,
    Pair,
    Pairs,
    Scene,
    asked,
    chat,
    pair,
    recordings,
    spared,
    spoken,
    weather,
)
from helpers.scripted_tapes import Json, Staged

USER: Json = {"role": "user", "content": "What is the weather in Gent?"}
CITIES = '{"city":"Gent"}', '{"city":"Rome"}'
BOTH = (*weather(CITIES[0]), *weather(CITIES[1], index=1), FINISH)
ALIVE = b": keep-alive\n\n"
UI = (("x-vercel-ai-ui-message-stream", "v1"),)


def app(*events: Json) -> Staged:
    """What an application streams to its page, an event per read."""
    return Staged(
        reads=[sse(event, done=False) for event in events],
        request={"message": "What is the weather in Gent?"},
        host="http://127.0.0.1:3000",
        target="/agent/stream",
        tap=Tap.APP,
    )


def ui(*events: Json) -> Staged:
    """The same in the events of the AI SDK."""
    start: list[Json] = [{"type": "start", "messageId": "m"}, {"type": "start-step"}]
    finish: Json = {"type": "finish", "finishReason": "stop"}
    base = app(*start, *events, finish)
    return replace(base, reads=[*base.reads, DONE], target="/api/chat", headers=UI)


@recordings
def events() -> Pairs:
    """Rules about the application's own events."""
    fine = app(text("I look it up."), call(), result(), text(" It is 13 °C."), done())
    whole = done("I look it up. It is 13 °C.")
    shown = (available(), output())
    named: Json = {"type": "tool_call", "callId": "c1", "toolName": "get", "args": {"a": 1}}
    return {
        "A001": spared(
            pair(app(call(None), result(), done()), fine),
            named_elsewhere=app(named, {"type": "tool_result", "callId": "c1"}, done()),
        ),
        "A002": spared(
            pair(app(call("get", 10), result(), done()), fine),
            string_of_json=app(call("get", '{"a": 1}'), result(), done()),
            command=app(call("bash", "ls -l"), result("bash"), done()),
        ),
        "A003": spared(
            pair(ui(*shown, available("c2", value={"a": 2})), ui(*shown)),
            run_by_the_page=app(call("search"), result("search"), call("confirm"), done()),
        ),
        "A004": spared(
            pair(app(call(), result(), call("get", {"a": 2})), fine, "A003"),
            no_last_event=app(text("I look it up."), text(" It is 13 °C.")),
            done_per_step=app(text("I look it up."), done(), text("It is 13 °C."), done()),
        ),
        "A005": spared(
            pair(app(text("Hello"), done(), done()), app(text("Hello"), done())),
            done_per_step=app(text("Hello"), done(), text("Bye"), done()),
        ),
        "A006": spared(
            pair(
                app(text("I look it up."), call(), result(), text(" It is 13 °C."), done("")),
                app(text("I look it up."), call(), result(), text(" It is 13 °C."), whole),
            ),
            another_content=app(text("It is 13 °C."), done("weather in Gent")),
        ),
    }


@recordings
def dead_zones() -> Pairs:
    """Rules about silence."""
    role = choice({"role": "assistant", "content": ""})
    answered = replace(_again(("call_fake0", CITIES[0])), at_s=2.0)
    left = replace(answered, at_s=0.0, reads=[], end_s=30.0, reason=EndReason.CLIENT_CLOSED)
    slow = chat(TEXT, STOP)
    size = sum(len(read) for read in slow.reads if isinstance(read, bytes))
    return {
        "D001": spared(
            pair(
                spoken("gemini-interactions", wait=(9, 12.0)),
                spoken("gemini-interactions", wait=(9, 8.0)),
            ),
            recorder_held_up=replace(spoken("gemini-interactions", wait=(9, 15.0)), held_up=True),
        ),
        "D002": spared(
            pair(chat(role, STOP), chat(role, TEXT, STOP)),
            structured=chat(
                role, STOP, request=asked(tools=[], guided_choice=["", "It is raining."])
            ),
            cancelled=Staged(
                reads=[
                    responses.sse(event)
                    for event in (responses.created(), responses.ended(status="cancelled"))
                ],
                target="/v1/responses",
            ),
            stop_sequence=chat(role, choice({}, "stop_sequence")),
        ),
        "D003": spared(
            Pair(
                fires=Scene(exchanges=[chat(*HEALTHY)], stop_s=45.0),
                silent=Scene(exchanges=[chat(*HEALTHY), answered], stop_s=45.0),
            ),
            recorder_lost_some=Scene(
                exchanges=[replace(chat(*HEALTHY), lost=frozenset({1}))], stop_s=45.0
            ),
        ),
        "D004": spared(
            pair(left, replace(answered, at_s=0.0), "W006"),
            recorder_held_up=replace(left, held_up=True),
        ),
        "D005": pair(
            replace(slow, delivered=((3.0, size),)), replace(slow, delivered=((0.3, size),))
        ),
    }


def _again(*repeated: tuple[str, str], name: str = "get_weather") -> Staged:
    """The next request, which repeats these calls (id, arguments) with their results."""
    said = exchanges.assistant(*((one, name, arguments) for one, arguments in repeated))
    told = [exchanges.result(one, "13 °C") for one, _ in repeated]
    history: list[Json] = [USER, said, *told]
    return replace(chat(TEXT, STOP, request=asked(messages=history)), at_s=2.0)


@recordings
def conversations() -> Pairs:
    """Rules about what an application made of a reply."""
    both = [(f"call_fake{at}", city) for at, city in enumerate(CITIES)]
    first = chat(*BOTH)

    def told(*repeated: tuple[str, str], name: str = "get_weather") -> Scene:
        return Scene(exchanges=[first, _again(*repeated, name=name)])

    silent = told(*both)
    return {
        "C001": Pair(fires=told(both[1]), silent=silent),
        "C002": Pair(fires=told(both[0], (both[1][0], "")), silent=silent),
        "C003": Pair(fires=told(*both, name="get_weather" * 2), silent=silent),
    }
