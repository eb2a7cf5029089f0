"""Scenes of programs that look mistaken and are not, beside those that stand with their rules.

Each is named after an explanation on the page of its rule. Nothing here has happened.
"""

from collections.abc import Sequence
from dataclasses import replace

from helpers import exchanges, messages, responses, scenes_reasoning
from helpers.app import available, call, done, output, result, text
from helpers.chat import FINISH, calls, choice, entry
from helpers.scenes import HEALTHY, STOP, TEXT, Innocent, Scene, asked, chat, innocents, weather
from helpers.scenes_apps import BOTH, CITIES, USER, app, ui
from helpers.scenes_histories import called, said
from helpers.scenes_requests import ANSWER, LAST, MORE, PIECES, SYSTEM, answered, text_scene
from helpers.scenes_turns import CALLS, COMPLAINT, told, turn
from helpers.scenes_wire import GREETED, claude, response
from helpers.scripted_tapes import Json, Staged

ASKS = exchanges.assistant(CALLS[0])
RESULT = exchanges.result("call_fake0", "13 °C")
STEP = (ASKS, RESULT)
HELLO = answered("Hello")


@innocents
def innocent() -> Innocent:
    """By the code of a rule, its scenes by what happens in them."""
    return {
        **_events(),
        **_calls(),
        **_rounds(),
        **_texts(),
        "C013": scenes_reasoning.innocent(),
        **_repetitions(),
        **_agents(),
    }


def tool(name: str, **properties: object) -> Json:
    """A tool that a request offers."""
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def user(content: object) -> Json:
    """A message of the user."""
    return {"role": "user", "content": content}


def step(number: int, name: str, arguments: str, found: str) -> tuple[Json, Json]:
    """A call in a history and its result."""
    call_id = f"call_fake{number}"
    return exchanges.assistant((call_id, name, arguments)), exchanges.result(call_id, found)


def asking(at_s: float, *history: Json, reply: Sequence[object] = (), **more: object) -> Staged:
    """An exchange with just this history, answered with a text if no reply is given."""
    request = asked(messages=list(history), **more)
    return replace(chat(*(reply or (TEXT, STOP)), request=request), at_s=at_s)


def spoken_text(*pieces: str) -> list[object]:
    """An answer in text."""
    return [*(choice({"content": piece}) for piece in pieces), STOP]


def _events() -> Innocent:
    """What applications tell their pages."""
    report: Json = {"type": "tool_call", "callId": "c2", "name": "write_report", "arguments": {}}
    found: Json = {"type": "tool_result", "callId": "c2", "name": "write_report", "result": "3 p."}
    opened: Json = {"type": "tool_call_start", "callId": "c1", "name": "get"}
    whole: Json = {"type": "tool_call", "callId": "c1", "name": "get", "arguments": {"a": 1}}
    shown: Json = {"type": "tool_result", "callId": "c1", "name": "get", "result": "13 °C"}
    answer = (text("It is 13 °C,"), text(" and <b>windy</b>."))
    return {
        "A002": {
            "arguments-follow": _told(opened, whole, shown, done()),
            "arguments-not-shown": _told({"type": "tool_call", "name": "get"}, result(), done()),
        },
        "A003": {
            "results-not-told": _told(
                call("get_weather"), call("get_time"), text("It is 13 °C."), done()
            ),
            "no-result-in-the-events-of-a-library": Scene(
                exchanges=[ui(available(), available("c2", name="get_time"))]
            ),
            "told-in-a-later-stream": Scene(
                exchanges=[
                    app(whole, shown, report, text("The report is being written."), done()),
                    replace(app(found, text("Here is the report."), done()), at_s=30.0),
                ]
            ),
            "one-tool-in-the-background": Scene(
                exchanges=[ui(available(), output(), available("c2", name="write_report"))]
            ),
        },
        "A006": {
            "nothing-by-contract": _told(*answer, done("")),
            "one-word": _told(*answer, done("ok")),
            "formatted": _told(*answer, done("It is 13 °C, and windy.")),
        },
    }


def _told(*events: Json) -> Scene:
    return Scene(exchanges=[app(*events)])


def _calls() -> Innocent:
    """What applications make of calls and their results."""
    one = chat(*HEALTHY)
    station = tool("get_weather", city={"type": "string"}, station={"type": "integer"})
    typed = called("call_fake0", '{"city":"Gent","station":"42"}', tools=[station])
    converted = exchanges.assistant(("call_fake0", "get_weather", '{"city":"Gent","station":42}'))
    misnamed = chat(*weather(CITIES[0], name="weather"), FINISH)
    mine = exchanges.assistant(CALLS[0], ("call_own1", "get_weather", CITIES[0]))
    mine_too = exchanges.result("call_own1", "13 °C")
    shown = (user("What is the weather in Rome?"), exchanges.result("call_fake0", "21 °C"))
    stored = response(
        responses.created(), *responses.call(), responses.ended(responses.function('{"a":1}'))
    )
    asked_once: Json = {"model": "m", "stream": True, "input": "What is the weather?"}
    output: Json = {"type": "function_call_output", "call_id": "call_1", "output": "13 °C"}
    later: Json = {**asked_once, "input": [output], "previous_response_id": "resp_fake"}
    report = [*weather('{"city":"Gent"}', name="write_report"), FINISH]
    writes, written = step(0, "write_report", '{"city":"Gent"}', "The report has 3 pages.")
    tools = [tool("write_report", city={"type": "string"})]
    search: Json = {
        "type": "server_tool_use",
        "id": "srvtoolu_fake0",
        "name": "web_search",
        "input": {"query": "weather Gent"},
    }
    searched = (
        messages.start(),
        messages.tool_block(call_id="srvtoolu_fake0", kind="server_tool_use", name="web_search"),
        messages.piece('{"query":"weather Gent"}'),
        messages.stop(),
        messages.reason("pause_turn"),
        messages.STOP,
    )
    request: Json = {
        **messages.request(),
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
        "messages": [USER],
    }
    paused: Json = {"role": "assistant", "content": [search]}
    invalid = (
        "Invalid JSON input for tool get_weather: 1 validation error for get_weather_args\ncity\n"
        "  Input should be a valid integer [type=int_parsing, input_value='Gent', input_type=str]"
    )
    unlike = "Invalid input for tool get_weather: Type validation failed: expected a postcode"
    foreign = exchanges.assistant(("call_fake0", "get_weather", '{"city":"Ro'))
    complained = (foreign, exchanges.result("call_fake0", COMPLAINT))
    return {
        "C002": {
            "converted-types": told(typed, turn(2.0, converted, RESULT, tools=[station])),
        },
        "C003": {
            "tool-that-was-not-offered": told(misnamed, turn(2.0, *STEP)),
            "run-by-the-app": told(one, turn(2.0, mine, RESULT, mine_too)),
        },
        "C004": {
            "example-in-the-prompt": told(one, asking(2.0, *shown, USER, *STEP)),
            "kept-by-the-provider": told(
                replace(stored, request=asked_once),
                replace(scenes_reasoning.answering("It is 13 °C."), request=later, at_s=2.0),
            ),
        },
        "C005": {
            "runs-on": told(
                chat(*report, request=asked(messages=[USER], tools=tools)),
                turn(2.0, writes, MORE, tools=tools),
                turn(4.0, writes, MORE, HELLO, written, LAST, tools=tools),
            ),
            "run-by-the-provider": told(
                replace(claude(*searched), request=request),
                replace(
                    claude(*GREETED),
                    request={**request, "messages": [USER, paused]},
                    at_s=2.0,
                ),
            ),
            "taken-without-the-result": told(
                chat(*BOTH), turn(2.0, exchanges.assistant(*CALLS), RESULT, MORE)
            ),
        },
        "C009": {
            "not-what-the-tool-wants": told(
                one, turn(2.0, ASKS, exchanges.result("call_fake0", unlike))
            ),
            "of-an-empty-answer": told(
                chat(calls(entry(0, "call_fake0", name="get_time", arguments="")), FINISH),
                turn(2.0, *step(0, "get_time", "{}", "Error: Unexpected end of JSON input")),
            ),
            "refused-as-json": told(one, turn(2.0, ASKS, exchanges.result("call_fake0", invalid))),
            "of-another-conversation": told(
                one, asking(2.0, user("What is the weather in Rome?"), *complained)
            ),
        },
    }


def _limited(at_s: float, took_s: float = 0.1) -> Staged:
    """A request that is refused since there are too many."""
    body = b'{"error":{"message":"Rate limit reached","type":"requests"}}'
    base = chat(done=False, request=asked(messages=[USER]))
    return replace(
        base, reads=[(took_s, body)], content_type="application/json", status=429, at_s=at_s
    )


def _rounds() -> Innocent:
    """Conversations that go round."""
    job = [tool("get_status", job={"type": "string"})]
    named: Json = {"tool_choice": {"type": "function", "function": {"name": "get_weather"}}}
    towns = [f'{{"city":"{town}"}}' for town in ("Gent", "Rome", "Oslo")]
    agent: Json = {"role": "system", "content": "Write a title of at most four words."}
    title = user("Write a title for this conversation.")
    return {
        "C006": {
            "polled": _going(
                [("get_status", '{"job":"17"}', "running")] * 3, "It is done.", tools=job
            ),
            "long-work": _going(
                [
                    ("read_file", f'{{"path":"src/part{at}.py"}}', f"def part{at}(): ...")
                    for at in range(11)
                ],
                "I have read all of it.",
                tools=[tool("read_file", path={"type": "string"})],
            ),
        },
        "C008": {
            "several-users": Scene(exchanges=[_limited(at / 100) for at in range(6)]),
            "as-the-provider-asks": Scene(
                exchanges=[
                    replace(_limited(at * 10.5), headers=(("Retry-After", "10"),))
                    for at in range(5)
                ]
            ),
            "growing-pauses": Scene(exchanges=[_limited(at) for at in (0, 0.6, 1.7, 3.8, 7.9)]),
        },
        "C010": {
            "collected": _going([("get_weather", each, "13 °C") for each in towns], "", **named),
        },
        "C011": {
            "last-request": told(
                chat(*HEALTHY),
                turn(2.0, *STEP, said=[*weather(CITIES[1], number=1), FINISH]),
                turn(4.0, *STEP, *step(1, "get_weather", CITIES[1], "21 °C"), tools=[]),
            ),
            "another-agent": told(
                chat(*HEALTHY, request=asked(messages=[SYSTEM, USER])),
                asking(
                    2.0,
                    {"role": "system", "content": "You write for a newspaper."},
                    USER,
                    *STEP,
                    tools=[],
                ),
            ),
            "title": told(
                chat(*HEALTHY),
                turn(2.0, *STEP),
                asking(2.5, agent, USER, *STEP, HELLO, title, tools=[]),
                turn(6.0, *STEP, HELLO, MORE),
            ),
        },
    }


def _going(calls: Sequence[tuple[str, str, str]], last: str, **more: object) -> Scene:
    """A run of calls (name, arguments, result), one at a time, and the text at its end, if any."""
    history: list[Json] = []
    made: list[Staged] = []
    for at, (name, arguments, found) in enumerate(calls):
        reply = [*weather(arguments, name=name, number=at), FINISH]
        made.append(turn(2.0 * at, *history, said=reply, **more))
        history += step(at, name, arguments, found)
    if last:
        made.append(turn(2.0 * len(calls), *history, said=spoken_text(last), **more))
    return Scene(exchanges=made)


def _texts() -> Innocent:
    """Texts and results in histories."""
    whole = '{"town":"Gent","degrees":13,"wind":"some"}'
    anew = '{\n  "town": "Gent",\n  "degrees": 13,\n  "wind": "some"\n}'
    order, parcel = user("Where is my order?"), user("And where is my parcel, please?")
    shipped = "Your order 4711 has been shipped to Gent."
    brief = "You are welcome!"
    file = [tool("read_file", path={"type": "string"})]
    reads = [*weather('{"path":"out.log"}', name="read_file"), FINISH]
    read = step(0, "read_file", '{"path":"out.log"}', "[object Object]")
    sums = [tool("divide", a={"type": "number"}, b={"type": "number"})]
    divides = [*weather('{"a":0,"b":0}', name="divide"), FINISH]
    divided = step(0, "divide", '{"a":0,"b":0}', "NaN")
    left = [choice({"content": piece}) for piece in PIECES]
    return {
        "C012": {
            "spaced-otherwise": text_scene(
                "Gent:\n- 13 °C\n- wind", "Gent:\n\n", "-  13 °C\n", "-  wind"
            ),
            "without-citations": text_scene(
                "Gent has 13 °C and some wind.", "Gent has 13 °C", " [1]", " and some wind", " [2]."
            ),
            "summarised": text_scene("The assistant told the weather."),
            "edited": text_scene("Gent has 14 °C and some wind, as so often."),
            "written-anew": text_scene(anew, whole[:9], whole[9:20], whole[20:]),
            "interrupted": told(
                replace(chat(*left, done=False), end_s=0.5),
                turn(2.0, answered("".join(PIECES[:3])), MORE),
            ),
            "one-of-several-parts": text_scene(
                "It is 13 °C in Gent.", "I look it up.", "\n\n", "It is 13 °C", " in Gent."
            ),
        },
        "C014": {
            "other-instructions": Scene(
                exchanges=[
                    asking(0.0, SYSTEM, order, reply=spoken_text(shipped)),
                    asking(1.0, user("Help the customer."), reply=spoken_text("Who is it?")),
                    asking(2.0, user("Help the customer."), answered(shipped), MORE),
                ]
            ),
            "same-short-answer": Scene(
                exchanges=[
                    said(0.0, [order], brief),
                    said(1.0, [parcel], brief),
                    asking(2.0, parcel, answered(brief), MORE),
                ]
            ),
        },
        "C017": {
            "found-in-a-file": told(
                chat(*reads, request=asked(messages=[USER], tools=file)),
                turn(2.0, *read, tools=file),
            ),
            "not-a-number": told(
                chat(*divides, request=asked(messages=[USER], tools=sums)),
                turn(2.0, *divided, tools=sums),
            ),
        },
    }


def _repetitions() -> Innocent:
    """What comes twice, or is left out."""
    first = chat(*spoken_text(*PIECES))
    second = spoken_text("It will be", " 14 °C tomorrow.")
    go_on = user("Please continue with the next chapter.")
    chapters = [answered(f"Chapter {at}: it rains in Gent.") for at in range(2)]
    check = user("What is the capital of Belgium?")
    brussels = answered("It is Brussels.")
    note = user("The answer did not match the schema. Answer again, in JSON.")
    pictures = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,RmFr{letter}"}}
        for letter in "ABCD"
    ]
    page = {"type": "text", "text": "This is a page of the report."}
    appendix = {"type": "text", "text": "This is a page of its appendix."}
    failed = replace(
        chat(b'{"error":{"message":"overloaded"}}', done=False),
        status=503,
        content_type="application/json",
    )
    twice = user(f"{USER['content']}\n\n{USER['content']}")
    twice_more = user(f"{MORE['content']}\n\n{MORE['content']}")
    judge: Json = {"role": "system", "content": "Say in a sentence what the user has in mind."}
    doc: Json = {"role": "system", "content": "Answer from this handbook: " + "It rains. " * 400}
    judged = ("The user plans a journey.", "He wants to go soon.", "He is in a hurry.")
    return {
        "C018": {
            "best-of-n": Scene(
                exchanges=[
                    replace(chat(*spoken_text(f"Gent has {13 + at} °C.")), at_s=at / 100)
                    for at in range(3)
                ]
            ),
            "best-of-n-steps": told(
                chat(*HEALTHY),
                turn(2.0, *STEP, said=spoken_text("It is 13 °C.")),
                turn(2.01, *STEP, said=spoken_text("13 °C, as always.")),
            ),
            "lost-by-the-client": told(
                chat(*HEALTHY),
                turn(2.0, *STEP, said=spoken_text(*PIECES)),
                turn(32.0, *STEP, said=second),
            ),
            "trial-of-a-cache": told(
                asking(0.0, doc, USER, reply=spoken_text(*PIECES)),
                asking(2.0, doc, USER, reply=second),
            ),
        },
        "C019": {
            "answer-failed": told(failed, turn(2.0, USER)),
            "go-on": told(
                asking(0.0, go_on, reply=spoken_text("Chapter 0: it rains in Gent.")),
                asking(
                    2.0,
                    go_on,
                    chapters[0],
                    go_on,
                    reply=spoken_text("Chapter 1: it rains in Gent."),
                ),
                asking(4.0, go_on, chapters[0], go_on, chapters[1], go_on),
            ),
            "script-of-tests": told(
                asking(0.0, check, reply=spoken_text("It is", " Brussels.")),
                asking(2.0, check, brussels, check, reply=spoken_text("It is", " Brussels.")),
                asking(4.0, check, brussels, check, brussels, MORE),
            ),
            "note-of-a-library": told(
                first,
                turn(2.0, answered(ANSWER), note, said=spoken_text("It is 13 °C.")),
                turn(4.0, answered(ANSWER), note, answered("It is 13 °C."), note),
                turn(6.0, answered(ANSWER), note, note),
            ),
            "other-pictures": Scene(
                exchanges=[
                    asking(
                        0.0,
                        *(user([page, each]) for each in pictures[:2]),
                        *(user([appendix, each]) for each in pictures[2:]),
                    )
                ]
            ),
            "prompt-twice": told(
                asking(0.0, twice, reply=spoken_text(*PIECES)),
                asking(2.0, twice, answered(ANSWER), twice_more),
            ),
            "prompt-in-two-messages": told(
                asking(0.0, USER, USER, reply=spoken_text(*PIECES)),
                asking(2.0, USER, answered(ANSWER), MORE, MORE),
            ),
        },
        "C020": {
            "judged": told(
                asking(0.0, judge, USER, reply=spoken_text(judged[0])),
                asking(2.0, judge, USER, MORE, reply=spoken_text(judged[1])),
                asking(4.0, judge, USER, MORE, LAST, reply=spoken_text(judged[2])),
            ),
            "dropped-to-save-tokens": told(
                first,
                turn(2.0, MORE, said=second),
                turn(4.0, MORE, LAST, said=spoken_text("More of", " the same.")),
            ),
            "kept-in-the-system-prompt": told(
                asking(0.0, _recalls(), USER, reply=spoken_text(*PIECES)),
                asking(2.0, _recalls(ANSWER), USER, MORE, reply=second),
                asking(4.0, _recalls(ANSWER, "It will be 14 °C tomorrow."), USER, MORE, LAST),
            ),
            "kept-in-a-message-of-the-user": told(
                first,
                turn(2.0, user(f"You said: {ANSWER}"), MORE, said=second),
                turn(
                    4.0,
                    user(f"You said: {ANSWER}"),
                    MORE,
                    user("You said: It will be 14 °C tomorrow."),
                    LAST,
                ),
            ),
        },
    }


def _recalls(*answers: str) -> Json:
    """A system prompt that holds what was answered so far."""
    so_far = "".join(f"\nYou have said: {each}" for each in answers)
    return {"role": "system", "content": f"You are a friendly meteorologist.{so_far}"}


def _agents() -> Innocent:
    """Agents, and their instructions and tools."""
    hand = tool("transfer_to_clock")
    clock, answer = tool("get_time"), tool("final_answer", text={"type": "string"})
    weather_tool = tool("get_weather", city={"type": "string"})
    handed = [*weather("{}", name="transfer_to_clock"), FINISH]
    over = step(0, "transfer_to_clock", "{}", "done")
    system: Json = {"type": "message", **SYSTEM}
    question: Json = {"type": "message", **USER}
    more: Json = {"type": "message", **MORE}
    first: Json = {"model": "m", "stream": True, "input": [system, question]}
    both = asked(messages=[USER], tools=[weather_tool, clock])
    search = tool("tool_search", query={"type": "string"})
    found = step(0, "tool_search", '{"query":"weather"}', "get_weather")
    titled = (
        answered(ANSWER),
        user("Write a title for this."),
        answered("The weather in the town of Gent"),
        user("Shorter, please: four words at most."),
    )
    searches = [*weather('{"query":"weather"}', name="tool_search"), FINISH]
    return {
        "C021": {
            "handed-over": told(
                chat(*handed, request=asked(messages=[SYSTEM, USER], tools=[hand])),
                turn(2.0, *over, tools=[clock]),
            ),
            "handed-over-with-the-same-tools": told(
                chat(*handed, request=asked(messages=[SYSTEM, USER], tools=[hand, clock])),
                turn(2.0, *over, tools=[hand, clock]),
            ),
            "another-agent": told(
                asking(0.0, SYSTEM, USER, reply=spoken_text(*PIECES)),
                turn(2.0, answered(ANSWER), user("Now write it as a poem."), tools=[clock]),
            ),
            "a-summary": told(
                asking(0.0, SYSTEM, USER, reply=spoken_text(*PIECES)),
                turn(2.0, answered(ANSWER), user("Write a summary of all this."), tools=[]),
                asking(4.0, SYSTEM, USER, answered(ANSWER), MORE),
            ),
            "a-title-that-was-too-long": told(
                asking(0.0, SYSTEM, USER, reply=spoken_text(*PIECES)),
                turn(2.0, *titled[:2], said=spoken_text("The weather in", " the town of Gent")),
                turn(3.0, *titled, said=spoken_text("Weather", " in Gent")),
                asking(4.0, SYSTEM, USER, answered(ANSWER), MORE),
            ),
            "kept-by-the-provider": told(
                replace(scenes_reasoning.answering("It is 13 °C."), request=first),
                replace(
                    scenes_reasoning.answering("The same."),
                    request={**first, "input": [more], "previous_response_id": "resp_fake2"},
                    at_s=2.0,
                ),
            ),
        },
        "C022": {
            "once-only": told(chat(*HEALTHY, request=both), turn(2.0, *STEP, tools=[clock])),
            "found-by-a-search": told(
                chat(*searches, request=asked(messages=[USER], tools=[search])),
                turn(
                    2.0,
                    *found,
                    said=[*weather(CITIES[0], number=1), FINISH],
                    tools=[search, weather_tool],
                ),
                turn(
                    4.0, *found, *step(1, "get_weather", CITIES[0], "13 °C"), tools=[search, clock]
                ),
            ),
            "chosen-anew": told(
                chat(*HEALTHY, request=both), turn(2.0, *STEP, tools=[clock, tool("get_tides")])
            ),
            "final-answer-left": told(
                chat(*HEALTHY, request=asked(messages=[USER], tools=[weather_tool, answer])),
                turn(2.0, *STEP, tools=[answer]),
            ),
        },
    }
