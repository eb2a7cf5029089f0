"""Recordings of conversations: rules C, except C013."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from helpers import messages, responses
from helpers.chat import FINISH, calls, choice, entry
from helpers.exchanges import FINISH_TEXT, TEXT, assistant, result, system, user
from helpers.rule_recordings.build import (
    ASKS,
    CALL_REPLY,
    CALLS,
    GENT,
    GREETING,
    ONE_CALL,
    QUESTION,
    RESULT,
    ROME,
    STEP,
    TWO_CALLS,
    USER,
    WEATHER_TOOL,
    Recordings,
    anthropic,
    chat,
    error_reply,
    exchange,
    next_turn,
    openai_responses,
    openai_responses_text,
    request_with,
    text_reply,
    tool,
    weather_call,
    with_results,
)
from helpers.rule_recordings.tape import Json, ScriptedExchange

SYSTEM = system("You are a friendly meteorologist.")
MORE = user("And what about tomorrow, please?")
LAST = user("And the day after tomorrow?")
THANKS = user("Thank you very much for that.")
ORDER, BILL = user("Where is my order?"), user("I need my bill.")
COMPLAINT = "Failed to parse tool arguments: Unexpected end of JSON input"


def answer(text: str) -> Json:
    """The message of a history that repeats an answer in text."""
    return assistant(text=text)


def repeated_call(arguments: str, call_id: str = "call_fake0", name: str = "get_weather") -> Json:
    """The message of a history that repeats a call."""
    return assistant((call_id, name, arguments))


def step(number: int, name: str, arguments: str, output: str) -> tuple[Json, Json]:
    """A call in a history and its result."""
    call_id = f"call_fake{number}"
    return repeated_call(arguments, call_id, name), result(call_id, output)


def call_in_halves(
    arguments: str, call_id: str = "call_fake0", **request: object
) -> ScriptedExchange:
    """An answer with one call, its arguments in two pieces."""
    half = len(arguments) // 2
    pieces = weather_call(arguments[:half], arguments[half:], call_id=call_id)
    return exchange([*pieces, FINISH], request)


def calls_tool(name: str, arguments: str = "{}") -> list[object]:
    """The events of an answer that calls this tool."""
    return [*weather_call(arguments, name=name), FINISH]


def returned(content: str) -> list[ScriptedExchange]:
    """One call, and the request with this result."""
    return [ONE_CALL, next_turn(ASKS, result("call_fake0", content))]


def loop(
    *steps: tuple[str, str, str], last_text: str = "", **request: object
) -> list[ScriptedExchange]:
    """A run of calls (name, arguments, result), one at a time, and the text at its end, if any."""
    history: list[Json] = []
    exchanges: list[ScriptedExchange] = []
    for number, (name, arguments, output) in enumerate(steps):
        reply = [*weather_call(arguments, name=name, call_id=f"call_fake{number}"), FINISH]
        exchanges.append(exchange(reply, {"messages": [USER, *history], **request}))
        history += step(number, name, arguments, output)
    if last_text:
        exchanges.append(exchange(text_reply(last_text), {"messages": [USER, *history], **request}))
    return exchanges


def repeated_text(repeated: str, *pieces: str) -> list[ScriptedExchange]:
    """An answer in `pieces`, and the request that repeats it so."""
    return [chat(*text_reply(*(pieces or PIECES))), next_turn(answer(repeated), MORE)]


DATE = "Sun, 22 Nov 2026 05:30:{:02} GMT"
"""A time after the beginning of the tapes, by its seconds."""


def rate_limited(at_s: float, took_s: float = 0.1) -> ScriptedExchange:
    """A request that is rejected by a rate limit."""
    body = b'{"error":{"message":"Rate limit reached","type":"requests"}}'
    return replace(error_reply(429, body), reads=[(took_s, body)], at_s=at_s)


# Single calls and their results (C001 to C005, C009).
RANDOM = "call_9fA3kQz1bT"
RANDOM_CALL = call_in_halves(GENT, RANDOM)
NO = user("No, do not do that.")
NOTE: Json = {"type": "function", "function": {"name": "final_answer", "parameters": {}}}
UNITS: Json = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "unit": {"type": "string", "enum": ["celsius", "kelvin"], "default": "celsius"},
        "station": {"type": ["integer", "null"]},
    },
    "required": ["city"],
}
UNITS_TOOL = tool("get_weather", UNITS)
STATION_TOOL = tool("get_weather", city={"type": "string"}, station={"type": "integer"})
DIGITS = '{"city":"Gent","station":9007199254740993}'
LONG = '{"city":"' + "Gent " * 300 + '"}'
NESTED = '{"city":"{\\"name\\":"}'
REPORT_TOOL = tool("write_report", city={"type": "string"})
WRITES, WRITTEN = step(0, "write_report", GENT, "The report has 3 pages.")
STORED_REQUEST: Json = {"model": "m", "stream": True, "input": "What is the weather?"}
STORED_OUTPUT: Json = {"type": "function_call_output", "call_id": "call_1", "output": "13 °C"}
SEARCH: Json = {
    "type": "server_tool_use",
    "id": "srvtoolu_fake0",
    "name": "web_search",
    "input": {"query": "weather Gent"},
}
SEARCH_REQUEST: Json = {
    **messages.request(),
    "tools": [{"type": "web_search_20250305", "name": "web_search"}],
    "messages": [USER],
}
SECOND_RESULT = result("call_fake1", "21 °C")
INVALID_INPUT = (
    "Invalid JSON input for tool get_weather: 1 validation error for get_weather_args\ncity\n"
    "  Input should be a valid integer [type=int_parsing, input_value='Gent', input_type=str]"
)

SINGLE_CALLS: Recordings = {
    "C001": {
        "fires": [TWO_CALLS, next_turn(*with_results(CALLS[1]))],
        "silent": [TWO_CALLS, next_turn(*with_results(*CALLS))],
        "silent-denied": [TWO_CALLS, next_turn(assistant(), NO)],
        "silent-interrupted": [ONE_CALL, next_turn(assistant(), THANKS)],
        "silent-one-at-a-time": [TWO_CALLS, next_turn(*STEP)],
        "silent-equal-calls": [
            chat(*weather_call(GENT), *weather_call(GENT, index=1), FINISH),
            next_turn(*STEP),
        ],
        "silent-handoff": [ONE_CALL, next_turn(assistant(), THANKS, tools=[NOTE])],
        "silent-as-text": [RANDOM_CALL, next_turn(answer(f"Calling {RANDOM}"), THANKS)],
        "silent-after-the-finish": [
            chat(TEXT, FINISH_TEXT, *weather_call(GENT)),
            next_turn(answer("Hello"), THANKS),
        ],
    },
    "C002": {
        "fires": [TWO_CALLS, next_turn(*with_results(CALLS[0], (*CALLS[1][:2], "")))],
        "silent": [TWO_CALLS, next_turn(*with_results(*CALLS))],
        "silent-schema-default": [
            call_in_halves('{"city":"Gent","station":null}', tools=[UNITS_TOOL]),
            next_turn(
                repeated_call('{"city":"Gent","unit":"celsius"}'), RESULT, tools=[UNITS_TOOL]
            ),
        ],
        "silent-double-precision": [
            call_in_halves(DIGITS),
            next_turn(repeated_call(DIGITS.replace("993", "992")), RESULT),
        ],
        "silent-review": [
            ONE_CALL,
            next_turn(
                repeated_call(ROME), result("call_fake0", "The user changed the city. 21 °C")
            ),
        ],
        "silent-filtered-emoji": [
            call_in_halves('{"city":"Besançon\U0001f327FR"}'),
            next_turn(repeated_call('{"city":"BesançonFR"}'), RESULT),
        ],
        "silent-edited-without-a-word": [ONE_CALL, next_turn(repeated_call(ROME), RESULT)],
        "silent-elided": [
            call_in_halves(LONG),
            next_turn(repeated_call('{"city":"Gent Gent... (1495 characters)"}'), RESULT),
        ],
        "silent-left-out": [call_in_halves(LONG), next_turn(repeated_call("{}"), RESULT)],
        "silent-before-it-came": [
            replace(ONE_CALL, interval_s=0.1),
            next_turn(repeated_call(""), RESULT, at_s=0.25),
        ],
        "silent-converted-types": [
            call_in_halves('{"city":"Gent","station":"42"}', tools=[STATION_TOOL]),
            next_turn(repeated_call('{"city":"Gent","station":42}'), RESULT, tools=[STATION_TOOL]),
        ],
        "silent-shortened": [
            chat(*weather_call('{"city":"', "Gent", " and", " Bruges", '"}'), FINISH),
            next_turn(repeated_call('{"city":"Gent"}'), RESULT),
        ],
    },
    "C003": {
        "fires": [
            TWO_CALLS,
            next_turn(*with_results(*((one, name * 2, text) for one, name, text in CALLS))),
        ],
        "silent": [TWO_CALLS, next_turn(*with_results(*CALLS))],
        "silent-repaired-name": [chat(*calls_tool("Get_Weather", GENT)), next_turn(*STEP)],
        "silent-own-ids": [ONE_CALL, next_turn(*with_results(("mine", *CALLS[0][1:])))],
        "silent-shortened-ids": [
            RANDOM_CALL,
            next_turn(*with_results((RANDOM.removeprefix("call_9"), *CALLS[0][1:]))),
        ],
        "silent-tool-that-was-not-offered": [
            chat(*calls_tool("weather", GENT)),
            next_turn(*STEP),
        ],
        "silent-run-by-the-app": [
            ONE_CALL,
            next_turn(*with_results(CALLS[0], ("call_own1", *CALLS[0][1:]))),
        ],
    },
    "C004": {
        "fires": [ONE_CALL, next_turn(RESULT)],
        "silent": [ONE_CALL, next_turn(*STEP)],
        "silent-shortened-history": [ONE_CALL, next_turn(*STEP), request_with(RESULT, THANKS)],
        "silent-other-conversation": [call_in_halves(ROME, messages=[ORDER]), next_turn(RESULT)],
        "silent-pending": [ONE_CALL, next_turn(ASKS, result("call_fake0", "pending"), RESULT)],
        "silent-example-in-the-prompt": [
            ONE_CALL,
            request_with(
                user("What is the weather in Rome?"), result("call_fake0", "21 °C"), USER, *STEP
            ),
        ],
        "silent-kept-by-the-provider": [
            openai_responses(
                responses.created(),
                *responses.call(),
                responses.ended(responses.function('{"a":1}')),
                request=STORED_REQUEST,
            ),
            openai_responses_text(
                "It is 13 °C.",
                {**STORED_REQUEST, "input": [STORED_OUTPUT], "previous_response_id": "resp_fake"},
            ),
        ],
    },
    "C005": {
        "fires": [TWO_CALLS, next_turn(assistant(*CALLS), RESULT)],
        "silent": [TWO_CALLS, next_turn(assistant(*CALLS), RESULT, SECOND_RESULT)],
        "silent-interrupted": [ONE_CALL, next_turn(ASKS, THANKS)],
        "silent-runs-on": [
            chat(*calls_tool("write_report", GENT), tools=[REPORT_TOOL]),
            next_turn(WRITES, MORE, tools=[REPORT_TOOL]),
            next_turn(WRITES, MORE, answer("Hello"), WRITTEN, LAST, tools=[REPORT_TOOL]),
        ],
        "silent-run-by-the-provider": [
            anthropic(
                messages.start(),
                messages.tool_block(
                    call_id="srvtoolu_fake0", kind="server_tool_use", name="web_search"
                ),
                messages.piece('{"query":"weather Gent"}'),
                messages.stop(),
                messages.reason("pause_turn"),
                messages.STOP,
                request=SEARCH_REQUEST,
            ),
            anthropic(
                *GREETING,
                request={
                    **SEARCH_REQUEST,
                    "messages": [USER, {"role": "assistant", "content": [SEARCH]}],
                },
            ),
        ],
        "silent-taken-without-the-result": [
            TWO_CALLS,
            next_turn(assistant(*CALLS), RESULT, MORE),
        ],
    },
    "C009": {
        "fires": returned(COMPLAINT),
        "silent": returned("13 °C"),
        "silent-of-a-file": returned("data.json: Unexpected end of JSON input"),
        "silent-of-an-argument": [
            call_in_halves(NESTED),
            next_turn(repeated_call(NESTED), result("call_fake0", COMPLAINT)),
        ],
        "silent-not-what-the-tool-wants": returned(
            "Invalid input for tool get_weather: Type validation failed: expected a postcode"
        ),
        "silent-of-an-empty-answer": [
            chat(calls(entry(0, "call_fake0", name="get_time", arguments="")), FINISH),
            next_turn(*step(0, "get_time", "{}", "Error: Unexpected end of JSON input")),
        ],
        "silent-refused-as-json": returned(INVALID_INPUT),
        "silent-of-another-conversation": [
            ONE_CALL,
            request_with(
                user("What is the weather in Rome?"),
                *step(0, "get_weather", '{"city":"Ro', COMPLAINT),
            ),
        ],
    },
}

# Conversations that go round (C006 to C008, C010, C011).
JOB_TOOL = tool("get_status", job={"type": "string"})
FILE_TOOL = tool("read_file", path={"type": "string"})
FORCED: dict[str, Any] = {"tool_choice": {"type": "function", "function": {"name": "get_weather"}}}
REQUIRED: dict[str, Any] = {"tools": [WEATHER_TOOL, NOTE], "tool_choice": "required"}
FORCED_CALL = chat(*CALL_REPLY, **FORCED)
CALL_AGAIN = [*weather_call(GENT, call_id="call_fake1"), FINISH]
ROME_NEXT = [*weather_call(ROME, call_id="call_fake1"), FINISH]
GENT_STEP = ("get_weather", GENT, "13 °C")

ROUNDS: Recordings = {
    "C006": {
        "fires": loop(GENT_STEP, GENT_STEP, GENT_STEP),
        "silent": loop(GENT_STEP, GENT_STEP, ("get_weather", ROME, "13 °C")),
        "silent-polled": loop(
            *[("get_status", '{"job":"17"}', "running")] * 3,
            last_text="It is done.",
            tools=[JOB_TOOL],
        ),
        "silent-long-work": loop(
            *(
                ("read_file", f'{{"path":"src/part{at}.py"}}', f"def part{at}(): ...")
                for at in range(11)
            ),
            last_text="I have read all of it.",
            tools=[FILE_TOOL],
        ),
    },
    "C007": {
        "fires": request_with(user("Thanks, bye!"), reply=CALL_REPLY),
        "silent": request_with(user("Thanks! And tomorrow?"), reply=CALL_REPLY),
    },
    "C008": {
        "fires": [rate_limited(at / 2, took_s=0.02) for at in range(5)],
        "silent": [request_with(user(f"And in town {at}?"), at_s=at / 2) for at in range(5)],
        "silent-several-users": [rate_limited(at / 100) for at in range(6)],
        "silent-as-the-provider-asks": [
            replace(rate_limited(at * 10.5), headers=(("Retry-After", "10"),)) for at in range(5)
        ],
        "silent-growing-pauses": [rate_limited(at) for at in (0, 0.6, 1.7, 3.8, 7.9)],
        "silent-as-asked-in-milliseconds": [
            replace(rate_limited(at / 2), headers=(("retry-after-ms", "450"),)) for at in range(5)
        ],
        "silent-as-asked-by-date": [
            replace(rate_limited(at * 2), headers=(("Retry-After", DATE.format(2 * at + 2)),))
            for at in range(5)
        ],
        "silent-polling": [rate_limited(at * 6) for at in range(5)],
    },
    "C010": {
        "fires": [FORCED_CALL, next_turn(*STEP, reply=CALL_AGAIN, **FORCED)],
        "silent": [FORCED_CALL, next_turn(*STEP, reply=CALL_AGAIN, tool_choice="auto")],
        "silent-final-answer": [
            chat(*CALL_REPLY, **REQUIRED),
            next_turn(*STEP, reply=CALL_REPLY, **REQUIRED),
        ],
        "silent-correction": [
            FORCED_CALL,
            next_turn(
                ASKS,
                result("call_fake0", "1 validation error: the city is unknown"),
                reply=CALL_REPLY,
                **FORCED,
            ),
        ],
        "silent-new-question": [
            FORCED_CALL,
            next_turn(*STEP, THANKS, reply=CALL_REPLY, **FORCED),
        ],
        "silent-collected": loop(
            GENT_STEP,
            ("get_weather", ROME, "13 °C"),
            ("get_weather", '{"city":"Oslo"}', "13 °C"),
            **FORCED,
        ),
    },
    "C011": {
        "fires": [ONE_CALL, next_turn(*STEP, tools=[])],
        "silent": [ONE_CALL, next_turn(*STEP)],
        "silent-last-request": [
            ONE_CALL,
            next_turn(*STEP, reply=ROME_NEXT),
            next_turn(*STEP, *step(1, "get_weather", ROME, "21 °C"), tools=[]),
        ],
        "silent-another-agent": [
            chat(*CALL_REPLY, messages=[SYSTEM, USER]),
            request_with(system("You write for a newspaper."), USER, *STEP, tools=[]),
        ],
        "silent-title": [
            ONE_CALL,
            next_turn(*STEP),
            request_with(
                system("Write a title of at most four words."),
                USER,
                *STEP,
                answer("Hello"),
                user("Write a title for this conversation."),
                at_s=2.5,
                tools=[],
            ),
            next_turn(*STEP, answer("Hello"), MORE),
        ],
    },
}

# Texts and results (C012, C014 to C017).
PIECES = ("Gen", "t has 13 °C", " and some wind", ", as so of", "ten.")
ANSWER = "".join(PIECES)
FIRST_ANSWER = chat(*text_reply(*PIECES))
SECOND = ("Now that is", " 13 °C.")
COMPACT = '{"town":"Gent","degrees":13,"wind":"some"}'
INDENTED = '{\n  "town": "Gent",\n  "degrees": 13,\n  "wind": "some"\n}'
SHIPPED = "Your order 4711 has been shipped to Gent."
INVOICE = "The invoice for your last month is attached."
WELCOME = "You are welcome!"
ASK_ORDER = user("Ask: Where is my order?")
PARCEL = user("And where is my parcel, please?")
HELPER = user("Help the customer.")


def text_answer(question: Json, text: str, at_s: float = 0.0) -> ScriptedExchange:
    """A separate conversation, answered with a text."""
    return request_with(question, reply=text_reply(text), at_s=at_s)


def two_results(*contents: str) -> list[ScriptedExchange]:
    """Two calls, for Gent and for Rome, and the request that brings these results."""
    results = [result(f"call_fake{at}", content) for at, content in enumerate(contents)]
    return [TWO_CALLS, next_turn(assistant(*CALLS), *results)]


CUT_CALL = chat(*weather_call('{"city":"Ge'), choice({}, "length"))
PYTHON_TOOL = tool("run_python", {"type": "object"})
PRINTS = '{"code":"print(object())"}'
SUM_TOOL = tool("divide", a={"type": "number"}, b={"type": "number"})

TEXTS: Recordings = {
    "C012": {
        "fires": repeated_text(ANSWER[3:]),
        "silent": repeated_text(ANSWER),
        "silent-trimmed": repeated_text(ANSWER, "\n\n", *PIECES, "\n"),
        "silent-without-thoughts": repeated_text(
            ANSWER, "<think>", "Hm", "</think>", "\n", *PIECES
        ),
        "silent-without-markup": repeated_text(
            "Gent has 13 °C", "**", "Gent", "**", " has", " 13 °C"
        ),
        "silent-translated": repeated_text("In Gent ist es 13 °C warm."),
        "silent-redacted": repeated_text("[REDACTED] has 13 °C and some wind, as so often."),
        "silent-up-to-a-stop-word": repeated_text(
            "It is 13 °C.", "It is", " 13 °C.", "\nTERMINATE"
        ),
        "silent-cut-to-a-length": repeated_text(ANSWER[:20]),
        "silent-in-a-template": repeated_text(f"Assistant: {ANSWER}"),
        "silent-another-attempt": [
            FIRST_ANSWER,
            next_turn(reply=text_reply(*SECOND)),
            next_turn(answer("".join(SECOND)), MORE),
        ],
        "silent-shortened-later": [
            FIRST_ANSWER,
            next_turn(answer(ANSWER), MORE, reply=text_reply(*SECOND)),
            next_turn(answer(ANSWER[3:]), MORE, answer("".join(SECOND)), LAST),
        ],
        "silent-after-it-broke-off": [
            chat(*text_reply(*PIECES)[:2], done=False),
            next_turn(answer(PIECES[0]), MORE),
        ],
        "silent-spaced-otherwise": repeated_text(
            "Gent:\n- 13 °C\n- wind", "Gent:\n\n", "-  13 °C\n", "-  wind"
        ),
        "silent-without-citations": repeated_text(
            "Gent has 13 °C and some wind.", "Gent has 13 °C", " [1]", " and some wind", " [2]."
        ),
        "silent-summarised": repeated_text("The assistant told the weather."),
        "silent-edited": repeated_text("Gent has 14 °C and some wind, as so often."),
        "silent-written-anew": repeated_text(INDENTED, COMPACT[:9], COMPACT[9:20], COMPACT[20:]),
        "silent-interrupted": [
            replace(chat(*text_reply(*PIECES)[:-1], done=False), end_s=0.5),
            next_turn(answer("".join(PIECES[:3])), MORE),
        ],
        "silent-one-of-several-parts": repeated_text(
            "It is 13 °C in Gent.", "I look it up.", "\n\n", "It is 13 °C", " in Gent."
        ),
        "silent-edited-chinese": repeated_text(
            "\u660e\u5929\u4e0b\u96e8", *"\u660e\u5929\u4f1a\u4e0b\u96e8"
        ),
    },
    "C014": {
        "fires": [
            text_answer(ORDER, SHIPPED),
            text_answer(BILL, INVOICE, 1.0),
            request_with(BILL, answer(SHIPPED), THANKS, at_s=2.0),
        ],
        "silent": [
            text_answer(ORDER, SHIPPED),
            text_answer(BILL, INVOICE, 1.0),
            request_with(BILL, answer(INVOICE), THANKS, at_s=2.0),
        ],
        "silent-supervisor": [
            text_answer(ORDER, SHIPPED),
            text_answer(ASK_ORDER, INVOICE, 1.0),
            request_with(ASK_ORDER, answer(SHIPPED), THANKS, at_s=2.0),
        ],
        "silent-summary": [
            text_answer(ORDER, SHIPPED),
            request_with(user("So far:"), answer(SHIPPED), BILL),
        ],
        "silent-other-instructions": [
            request_with(SYSTEM, ORDER, reply=text_reply(SHIPPED)),
            text_answer(HELPER, "Who is it?", 1.0),
            request_with(HELPER, answer(SHIPPED), MORE, at_s=2.0),
        ],
        "silent-same-short-answer": [
            text_answer(ORDER, WELCOME),
            text_answer(PARCEL, WELCOME, 1.0),
            request_with(PARCEL, answer(WELCOME), MORE, at_s=2.0),
        ],
    },
    "C015": {
        "fires": [
            TWO_CALLS,
            next_turn(
                assistant(*CALLS),
                result("call_fake1", "Gent: 13 °C"),
                result("call_fake0", "Rome: 21 °C"),
            ),
        ],
        "silent": two_results("Gent: 13 °C", "Rome: 21 °C"),
        "silent-plain": two_results("13 °C", "13 °C"),
        "silent-comparison": two_results("Gent is colder than Rome", "Gent is colder than Rome"),
    },
    "C016": {
        "fires": [CUT_CALL, next_turn(*step(0, "get_weather", '{"city":"Ge"}', "13 °C"))],
        "silent": returned("13 °C"),
        "silent-answered-with-an-error": [
            CUT_CALL,
            next_turn(*step(0, "get_weather", "{}", "Error: the arguments were cut off.")),
        ],
        "silent-second-attempt": [
            CUT_CALL,
            next_turn(reply=CALL_REPLY),
            next_turn(ASKS, result("call_fake0")),
        ],
    },
    "C017": {
        "fires": returned("[object Object]"),
        "silent": returned('{"temperature": 13}'),
        "silent-as-a-part": returned("It prints [object Object] for each row."),
        "silent-no-value": returned("undefined"),
        "silent-printed-by-code": [
            chat(*calls_tool("run_python", PRINTS), tools=[PYTHON_TOOL]),
            next_turn(*step(0, "run_python", PRINTS, "<object object at 0x7f5c1c0a2b40>")),
        ],
        "silent-found-in-a-file": [
            chat(*calls_tool("read_file", '{"path":"out.log"}'), tools=[FILE_TOOL]),
            next_turn(
                *step(0, "read_file", '{"path":"out.log"}', "[object Object]"), tools=[FILE_TOOL]
            ),
        ],
        "silent-not-a-number": [
            chat(*calls_tool("divide", '{"a":0,"b":0}'), tools=[SUM_TOOL]),
            next_turn(*step(0, "divide", '{"a":0,"b":0}', "NaN"), tools=[SUM_TOOL]),
        ],
    },
}

# What comes twice, or is left out (C018 to C020).
GO_ON = user("Go on")
TOMORROW = "It will be 14 °C tomorrow."
TOMORROW_REPLY = text_reply("It will be", " 14 °C tomorrow.")
CONTINUE = user("Please continue with the next chapter.")
CHAPTERS = [f"Chapter {at}: it rains in Gent." for at in range(2)]
CAPITAL = user("What is the capital of Belgium?")
BRUSSELS = "It is Brussels."
SCHEMA_NOTE = user("The answer did not match the schema. Answer again, in JSON.")
PICTURES = [
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,RmFr{letter}"}}
    for letter in "ABCD"
]
PAGE = {"type": "text", "text": "This is a page of the report."}
APPENDIX = {"type": "text", "text": "This is a page of its appendix."}
USER_TWICE = user(f"{QUESTION}\n\n{QUESTION}")
MORE_TWICE = user(f"{MORE['content']}\n\n{MORE['content']}")
JUDGE = system("Say in a sentence what the user has in mind.")
HANDBOOK = system("Answer from this handbook: " + "It rains. " * 400)
REMEMBERED = user(f"You said: {ANSWER}")


def remembering(*answers: str) -> Json:
    """A system prompt that quotes the answers so far."""
    so_far = "".join(f"\nYou have said: {text}" for text in answers)
    return system(f"You are a friendly meteorologist.{so_far}")


def first_answer(*prompt: Json) -> ScriptedExchange:
    """An exchange whose request has these messages, answered with `ANSWER`."""
    return request_with(*prompt, reply=text_reply(*PIECES))


REPETITIONS: Recordings = {
    "C018": {
        "fires": [ONE_CALL, next_turn(*STEP), next_turn(*STEP)],
        "silent": [ONE_CALL, next_turn(*STEP)],
        "silent-regenerated": [FIRST_ANSWER, next_turn(reply=text_reply("It is", " 13 °C."))],
        "silent-run-again": [
            ONE_CALL,
            next_turn(*STEP),
            next_turn(reply=CALL_REPLY),
            next_turn(*STEP),
        ],
        "silent-best-of-n": [
            chat(*text_reply(f"Gent has {13 + at} °C."), at_s=at / 100) for at in range(3)
        ],
        "silent-best-of-n-steps": [
            ONE_CALL,
            next_turn(*STEP, reply=text_reply("It is 13 °C.")),
            next_turn(*STEP, reply=text_reply("13 °C, as always."), at_s=2.01),
        ],
        "silent-lost-by-the-client": [
            ONE_CALL,
            next_turn(*STEP, reply=text_reply(*PIECES)),
            next_turn(*STEP, reply=TOMORROW_REPLY, at_s=32.0),
        ],
        "silent-trial-of-a-cache": [
            first_answer(HANDBOOK, USER),
            request_with(HANDBOOK, USER, reply=TOMORROW_REPLY),
        ],
    },
    "C019": {
        "fires": chat(*text_reply(*PIECES), messages=[USER, USER]),
        "silent": [FIRST_ANSWER, next_turn(answer(ANSWER), MORE)],
        "silent-pressed-twice": [FIRST_ANSWER, next_turn(USER)],
        "silent-asked-again": [FIRST_ANSWER, next_turn(answer(ANSWER), USER)],
        "silent-short": [FIRST_ANSWER, next_turn(answer(ANSWER), GO_ON, GO_ON)],
        "silent-answer-failed": [
            error_reply(503, b'{"error":{"message":"overloaded"}}'),
            next_turn(USER),
        ],
        "silent-go-on": [
            request_with(CONTINUE, reply=text_reply(CHAPTERS[0])),
            request_with(CONTINUE, answer(CHAPTERS[0]), CONTINUE, reply=text_reply(CHAPTERS[1])),
            request_with(CONTINUE, answer(CHAPTERS[0]), CONTINUE, answer(CHAPTERS[1]), CONTINUE),
        ],
        "silent-script-of-tests": [
            request_with(CAPITAL, reply=text_reply("It is", " Brussels.")),
            request_with(
                CAPITAL, answer(BRUSSELS), CAPITAL, reply=text_reply("It is", " Brussels.")
            ),
            request_with(CAPITAL, answer(BRUSSELS), CAPITAL, answer(BRUSSELS), MORE),
        ],
        "silent-note-of-a-library": [
            FIRST_ANSWER,
            next_turn(answer(ANSWER), SCHEMA_NOTE, reply=text_reply("It is 13 °C.")),
            next_turn(answer(ANSWER), SCHEMA_NOTE, answer("It is 13 °C."), SCHEMA_NOTE),
            next_turn(answer(ANSWER), SCHEMA_NOTE, SCHEMA_NOTE),
        ],
        "silent-other-pictures": request_with(
            *(user([PAGE, picture]) for picture in PICTURES[:2]),
            *(user([APPENDIX, picture]) for picture in PICTURES[2:]),
        ),
        "silent-prompt-twice": [
            first_answer(USER_TWICE),
            request_with(USER_TWICE, answer(ANSWER), MORE_TWICE),
        ],
        "silent-prompt-in-two-messages": [
            first_answer(USER, USER),
            next_turn(answer(ANSWER), MORE, MORE),
        ],
    },
    "C020": {
        "fires": [
            FIRST_ANSWER,
            next_turn(MORE, reply=text_reply(*PIECES, "!")),
            next_turn(MORE, LAST),
        ],
        "silent": [
            FIRST_ANSWER,
            next_turn(answer(ANSWER), MORE, reply=text_reply(*PIECES, "!")),
            next_turn(answer(ANSWER), MORE, answer(ANSWER + "!"), LAST),
        ],
        "silent-interrupted-once": [FIRST_ANSWER, next_turn(MORE)],
        "silent-labels": [
            chat(*text_reply("weather")),
            next_turn(MORE, reply=text_reply("weather")),
            next_turn(MORE, LAST),
        ],
        "silent-judged": [
            request_with(JUDGE, USER, reply=text_reply("The user plans a journey.")),
            request_with(JUDGE, USER, MORE, reply=text_reply("He wants to go soon.")),
            request_with(JUDGE, USER, MORE, LAST, reply=text_reply("He is in a hurry.")),
        ],
        "silent-dropped-to-save-tokens": [
            FIRST_ANSWER,
            next_turn(MORE, reply=TOMORROW_REPLY),
            next_turn(MORE, LAST, reply=text_reply("More of", " the same.")),
        ],
        "silent-kept-in-the-system-prompt": [
            first_answer(remembering(), USER),
            request_with(remembering(ANSWER), USER, MORE, reply=TOMORROW_REPLY),
            request_with(remembering(ANSWER, TOMORROW), USER, MORE, LAST),
        ],
        "silent-kept-in-a-message-of-the-user": [
            FIRST_ANSWER,
            next_turn(REMEMBERED, MORE, reply=TOMORROW_REPLY),
            next_turn(REMEMBERED, MORE, user(f"You said: {TOMORROW}"), LAST),
        ],
    },
}

# Agents, and their instructions and tools (C021, C022).
CLOCK, TIDES = tool("get_time"), tool("get_tides")
CLOCK_OF_ANY = tool("get_time", {"type": "object"})
OPEN_WEATHER = tool("get_weather", city={"type": "string"})
FINAL_ANSWER = tool("final_answer", text={"type": "string"})
TRANSFER = tool("transfer_to_clock")
HANDED_OVER = step(0, "transfer_to_clock", "{}", "done")
SEARCH_TOOL = tool("tool_search", query={"type": "string"})
SEARCHED = step(0, "tool_search", '{"query":"weather"}', "get_weather")
LATER = [SYSTEM, USER, answer(ANSWER), MORE]
TITLE = (answer(ANSWER), user("Write a title for this."))
SHORTER = (
    answer("The weather in the town of Gent"),
    user("Shorter, please: four words at most."),
)
ITEMS: list[Json] = [{"type": "message", **message} for message in (SYSTEM, USER, MORE)]
INSTRUCTED: Json = {"model": "m", "stream": True, "input": ITEMS[:2]}


def handed_over(before: Sequence[Json], after: Sequence[Json]) -> list[ScriptedExchange]:
    """A call that hands over to another agent, with the tools before it and after it."""
    return [
        chat(*calls_tool("transfer_to_clock"), messages=[SYSTEM, USER], tools=before),
        next_turn(*HANDED_OVER, tools=after),
    ]


def with_tools(before: Sequence[Json], after: Sequence[Json]) -> list[ScriptedExchange]:
    """One call and the next request, with the tools of each."""
    return [chat(*CALL_REPLY, tools=before), next_turn(*STEP, tools=after)]


AGENTS: Recordings = {
    "C021": {
        "fires": [chat(*CALL_REPLY, messages=[SYSTEM, USER]), next_turn(*STEP)],
        "silent": [
            chat(*CALL_REPLY, messages=[SYSTEM, USER]),
            request_with(SYSTEM, USER, *STEP),
        ],
        "silent-a-title": [
            first_answer(SYSTEM, USER),
            next_turn(reply=text_reply("Weather", " in Gent")),
        ],
        "silent-handed-over": handed_over([TRANSFER], [CLOCK]),
        "silent-handed-over-with-the-same-tools": handed_over([TRANSFER, CLOCK], [TRANSFER, CLOCK]),
        "silent-another-agent": [
            first_answer(SYSTEM, USER),
            next_turn(answer(ANSWER), user("Now write it as a poem."), tools=[CLOCK]),
        ],
        "silent-a-summary": [
            first_answer(SYSTEM, USER),
            next_turn(answer(ANSWER), user("Write a summary of all this."), tools=[]),
            request_with(*LATER),
        ],
        "silent-a-title-that-was-too-long": [
            first_answer(SYSTEM, USER),
            next_turn(*TITLE, reply=text_reply("The weather in", " the town of Gent")),
            next_turn(*TITLE, *SHORTER, reply=text_reply("Weather", " in Gent"), at_s=3.0),
            request_with(*LATER, at_s=4.0),
        ],
        "silent-kept-by-the-provider": [
            openai_responses_text("It is 13 °C.", INSTRUCTED),
            openai_responses_text(
                "The same.",
                {**INSTRUCTED, "input": ITEMS[2:], "previous_response_id": "resp_fake2"},
            ),
        ],
    },
    "C022": {
        "fires": with_tools([WEATHER_TOOL, CLOCK_OF_ANY], [CLOCK_OF_ANY]),
        "silent": with_tools([WEATHER_TOOL, CLOCK_OF_ANY], [WEATHER_TOOL, CLOCK_OF_ANY]),
        "silent-handed-over": handed_over(
            [tool("transfer_to_clock", {"type": "object"})], [CLOCK_OF_ANY]
        ),
        "silent-once-only": with_tools([OPEN_WEATHER, CLOCK], [CLOCK]),
        "silent-found-by-a-search": [
            chat(*calls_tool("tool_search", '{"query":"weather"}'), tools=[SEARCH_TOOL]),
            next_turn(
                *SEARCHED,
                reply=CALL_AGAIN,
                tools=[SEARCH_TOOL, OPEN_WEATHER],
            ),
            next_turn(
                *SEARCHED, *step(1, "get_weather", GENT, "13 °C"), tools=[SEARCH_TOOL, CLOCK]
            ),
        ],
        "silent-chosen-anew": with_tools([OPEN_WEATHER, CLOCK], [CLOCK, TIDES]),
        "silent-final-answer-left": with_tools([OPEN_WEATHER, FINAL_ANSWER], [FINAL_ANSWER]),
    },
}

RECORDINGS: Recordings = {**SINGLE_CALLS, **ROUNDS, **TEXTS, **REPETITIONS, **AGENTS}
