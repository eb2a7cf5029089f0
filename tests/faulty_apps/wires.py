"""Faults of providers and gateways, met by an app that is right."""

import dataclasses
import json

from odd_apps.kit import (
    CHAT_MODEL,
    arguments,
    chat,
    client,
    events,
    openai_url,
    result,
    schema,
    system,
    tool,
    user,
)
from odd_apps.provider import call, calls, say

from .kit import fault

WEATHER = [tool("get_weather", {"city": "string", "day": "string"})]


def once(question="How is it in Lisbon on Friday?", **more):
    """A question, the calls that it leads to, and the answer."""
    messages = [user(question)]
    message = chat(messages, WEATHER, **more)
    messages.append(message)
    for one in message.get("tool_calls", ()):
        messages.append(result(one, ran(one)))
    if "tool_calls" in message:
        chat(messages, WEATHER)


def ran(one):
    """What the tool says; bad arguments are told to the model."""
    try:
        return f"sunny in {arguments(one)['city']}"
    except ValueError as error:
        return f"error: the arguments are no valid JSON: {error}"


ANSWERED = say("It is sunny.")
LISBON = call("get_weather", {"city": "Lisbon", "day": "2027-05-07"})
PORTO = call("get_weather", {"city": "Porto", "day": "2027-05-08"})


def with_id(one, name):
    """The call with that id."""
    return dataclasses.replace(one, id=name)


@fault(
    [
        calls(with_id(LISBON, "call_3f9a2c81d07b4e65")),
        say("Sunny in Lisbon."),
        calls(with_id(PORTO, "call_3f9a2c81d07b4e65")),
        say("Sunny in Porto, too."),
    ],
    [
        calls(with_id(LISBON, "call_3f9a2c81d07b4e65")),
        say("Sunny in Lisbon."),
        calls(with_id(PORTO, "call_81c6b02e9d5f4a37")),
        say("Sunny in Porto, too."),
    ],
)
def ids_reused(*, healthy):
    """The gateway makes the id of the tool's name: each turn has the same."""
    messages = []
    for question in ("How is it in Lisbon on Friday?", "And in Porto on Saturday?"):
        messages.append(user(question))
        while (message := chat(messages, WEATHER)).get("tool_calls"):
            messages += [message, *(result(one, ran(one)) for one in message["tool_calls"])]
        messages.append(message)


PERSON = tool("save_person", {"name": "string", "age": "integer"})


@fault(
    [say("Ada is 36 years old.")],
    [calls(call("save_person", {"name": "Ada", "age": 36}), finish="stop")],
)
def tool_choice_ignored(*, healthy):
    """A call is forced, and the provider answers in words."""
    forced = {"type": "function", "function": {"name": "save_person"}}
    message = chat([user("Ada is 36.")], [PERSON], tool_choice=forced)
    print(message.get("tool_calls", "no call"))


@fault(
    [calls(LISBON, PORTO), ANSWERED],
    [calls(LISBON), ANSWERED],
)
def parallel_calls_not_wanted(*, healthy):
    """parallel_tool_calls is false, and two calls come."""
    once(parallel_tool_calls=False)


STRICT = {
    "type": "json_schema",
    "json_schema": {
        "name": "person",
        "strict": True,
        "schema": {
            **schema({"name": "string", "age": "integer"}),
            "additionalProperties": False,
        },
    },
}
GOOD = '{"name":"Ada Lovelace","age":36}'


def extracted():
    """JSON by schema, once."""
    text = chat([system("Extract."), user("Ada Lovelace, 36")], response_format=STRICT)["content"]
    try:
        print(json.loads(text))
    except ValueError as error:
        print("no JSON:", error)


@fault([say('{"name":"Ada Lovelace","age":')], [say(GOOD)])
def structured_output_broken(*, healthy):
    """The schema is strict, the answer ends well, and its JSON is half."""
    extracted()


@fault([say('{"name":"Ada Lovelace","age":"36","born":1815}')], [say(GOOD)])
def structured_output_against_its_schema(*, healthy):
    """The schema is strict, and the answer is JSON of another shape."""
    extracted()


@fault(
    [say("I am a model.", model="llama-3.1-8b-instruct")],
    [say("I am a model.", model="gpt-4.1-2025-04-14")],
)
def another_model_answers(*, healthy):
    """gpt-4.1 was asked for, and another maker's model says that it answers."""
    chat([user("Who are you?")], model="gpt-4.1")


COUNTED = {"stream_options": {"include_usage": True}}


@fault(
    [
        say(
            "Ten words stand here, and the bill says that none does.",
            usage={"prompt_tokens": 12, "completion_tokens": 0, "total_tokens": 7},
        )
    ],
    [say("Ten words stand here, and the bill says that none does.")],
)
def usage_that_cannot_be(*, healthy):
    """No tokens for an answer of ten words, and a total below the prompt alone."""
    chat([user("Ten words please")], **COUNTED)


@fault(
    [say("The capital of Peru is Lima.<|im_end|>\n<|im_start|>user\n"), say("Ten million.")],
    [say("The capital of Peru is Lima."), say("Ten million.")],
)
def end_tokens_in_the_text(*, healthy):
    """The server does not stop at its end token, and sends it as text."""
    messages = [user("Capital of Peru?")]
    messages += [chat(messages, model="qwen2.5-7b"), user("How many live there?")]
    chat(messages, model="qwen2.5-7b")


PAGE = (
    "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad "
    "Gateway</h1></center>\r\n<hr><center>nginx/1.25.3</center>\r\n</body>\r\n</html>"
)


@fault([say("The capital of Peru " + PAGE)], [say("The capital of Peru is Lima.")])
def html_in_the_text(*, healthy):
    """The gateway puts the page of an error behind it into the text of the answer."""
    chat([user("Capital of Peru?")])


ACCENTS = "São Paulo é a maior cidade; não é a capital. Já Brasília é."


@fault(
    [say(ACCENTS.encode().decode("latin-1"))],
    [say(ACCENTS)],
)
def mojibake_in_the_text(*, healthy):
    """The gateway read UTF-8 as Latin-1 before it sent the text on."""
    chat([user("Qual é a maior cidade do Brasil?")])


def finish_first(stream):
    """The finish reason comes before the call."""
    at = next(i for i, event in enumerate(stream) if b'"finish_reason":"tool_calls"' in event)
    return [stream[0], stream[at], *stream[1:at], *stream[at + 1 :]]


@fault(
    [calls(LISBON, change=finish_first, pace=0.01), say("I could not look it up.")],
    [calls(LISBON, pace=0.01), say("Sunny in Lisbon.")],
)
def call_after_the_finish_reason(*, healthy):
    """The provider delivers a call after the finish reason; the app stops reading there."""
    messages = [user("How is it in Lisbon on Friday?")]
    body = {"model": CHAT_MODEL, "messages": messages, "tools": WEATHER, "stream": True}
    made = {}
    with client() as http:
        for event in events(openai_url() + "/chat/completions", body, http):
            choice = event["choices"][0]
            for piece in choice["delta"].get("tool_calls", ()):
                one = made.setdefault(
                    piece["index"],
                    {
                        "id": piece.get("id"),
                        "type": "function",
                        "function": {"name": "", "arguments": ""},
                    },
                )
                for name, value in piece["function"].items():
                    one["function"][name] += value
            if choice["finish_reason"]:
                break
    if made:
        messages.append({"role": "assistant", "content": None, "tool_calls": list(made.values())})
        messages += [result(one, ran(one)) for one in made.values()]
    else:
        messages += [{"role": "assistant", "content": "(no answer)"}, user("Well?")]
    chat(messages, WEATHER)


def argument_deltas(stream):
    """Where the fragments of arguments are."""
    return [i for i, event in enumerate(stream) if b'"function":{"arguments":"' in event]


def duplicated(stream):
    """One fragment twice."""
    at = argument_deltas(stream)[1]
    return [*stream[: at + 1], stream[at], *stream[at + 1 :]]


def lost(stream):
    """One fragment less."""
    at = argument_deltas(stream)[1]
    return [*stream[:at], *stream[at + 1 :]]


def swapped(stream):
    """Two fragments in the wrong order."""
    at = argument_deltas(stream)[1]
    return [*stream[:at], stream[at + 1], stream[at], *stream[at + 2 :]]


TOLD = say("I could not look it up.")


@fault([calls(LISBON, change=duplicated, pace=0.005), TOLD], [calls(LISBON, pace=0.005), ANSWERED])
def delta_duplicated(*, healthy):
    """A fragment of the arguments is sent twice."""
    once()


@fault([calls(LISBON, change=lost, pace=0.005), TOLD], [calls(LISBON, pace=0.005), ANSWERED])
def delta_lost(*, healthy):
    """A fragment of the arguments is not sent."""
    once()


@fault([calls(LISBON, change=swapped, pace=0.005), TOLD], [calls(LISBON, pace=0.005), ANSWERED])
def deltas_swapped(*, healthy):
    """Two fragments of the arguments come in the wrong order."""
    once()
