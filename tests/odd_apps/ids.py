"""Apps and providers with their own ideas of call ids."""

import threading

from .kit import (
    app,
    arguments,
    chat,
    claude,
    claude_result,
    claude_tool,
    gemini,
    gemini_tools,
    result,
    system,
    tool,
    user,
)
from .provider import call, calls, say

WEATHER = [tool("get_weather", {"city": "string"})]


@app(
    [
        calls(call("get_weather", {"city": "Rome"}), call("get_weather", {"city": "Milan"})),
        say("Rome 20, Milan 15."),
    ]
)
def own_ids():
    """Calls get ids of the app's database; call and result agree."""
    messages = [user("Rome and Milan?")]
    message = chat(messages, WEATHER)
    for number, one in enumerate(message["tool_calls"]):
        one["id"] = f"toolrun-{4711 + number}"
    messages.append(message)
    messages += [
        result(one, "20" if number == 0 else "15")
        for number, one in enumerate(message["tool_calls"])
    ]
    print(chat(messages, WEATHER)["content"])


@app([calls(call("get_weather", {"city": "Lyon"})), say("Lyon: 18.")])
def ids_of_nine_characters():
    """Mistral wants ids of nine letters and digits; the app shortens all that it gets."""
    messages = [user("Lyon?")]
    message = chat(messages, WEATHER)
    for one in message["tool_calls"]:
        one["id"] = one["id"].removeprefix("call_")[:9]
    messages += [message, *(result(one, "18") for one in message["tool_calls"])]
    print(chat(messages, WEATHER, model="mistral-small-latest")["content"])


LONG = "call_" + "0123456789abcdef" * 4


@app([calls(call("get_weather", {"city": "Nice"}, id=LONG)), say("Nice: 22.")])
def ids_of_forty_characters():
    """OpenAI takes ids of at most forty characters; those of the gateway are longer."""
    messages = [user("Nice?")]
    message = chat(messages, WEATHER)
    for one in message["tool_calls"]:
        one["id"] = one["id"][:40]
    messages += [message, *(result(one, "22") for one in message["tool_calls"])]
    print(chat(messages, WEATHER)["content"])


@app(
    [
        calls(call("get_weather", {"city": "Kiel"}, id="functions.get_weather:0")),
        calls(call("get_weather", {"city": "Bonn"}, id="functions.get_weather:1")),
        say("Kiel 9, Bonn 11."),
    ]
)
def ids_sanitised():
    """Anthropic allows letters, digits, _ and -; the app replaces all else in ids of others."""
    import re

    messages = [user("Kiel and Bonn?")]
    while (message := chat(messages, WEATHER)).get("tool_calls"):
        for one in message["tool_calls"]:
            one["id"] = re.sub(r"[^a-zA-Z0-9_-]", "_", one["id"])
        messages += [message, *(result(one, "9") for one in message["tool_calls"])]
    print(message["content"])


@app(
    [
        calls(call("get_weather", {"city": "Graz"}, id="call_0")),
        say("Graz: 14."),
        calls(call("get_weather", {"city": "Linz"}, id="call_0")),
        calls(call("get_weather", {"city": "Wels"}, id="call_0")),
        say("Linz 13, Wels 12."),
    ]
)
def placeholder_ids():
    """A local server calls every call call_0; the app uses what it gets, turn by turn."""
    messages = [user("Graz?")]
    for question in ("Linz and Wels?", None):
        while (message := chat(messages, WEATHER, model="qwen2.5-7b-instruct")).get("tool_calls"):
            messages += [message, *(result(one, "13") for one in message["tool_calls"])]
        messages += [message, user(question)]


@app(
    [
        calls(call("get_weather", {"city": "Gent"}, id="functions.get_weather:0")),
        say("Gent: 10."),
        calls(call("get_weather", {"city": "Gent"}, id="functions.get_weather:0")),
        say("Still 10."),
    ]
)
def counter_ids_start_anew():
    """Counters of a conversation: two conversations begin with the same id and the same words."""
    for _ in range(2):
        messages = [user("Gent?")]
        message = chat(messages, WEATHER, model="kimi-k2")
        messages += [message, *(result(one, "10") for one in message["tool_calls"])]
        print(chat(messages, WEATHER, model="kimi-k2")["content"])


def by_user(asked):
    """The same ids for all users."""
    text = asked.text
    city = next(name for name in ("Riga", "Tartu", "Vilnius") if name in text)
    if '"tool"' in text:
        return say(f"It is cold in {city}.", pace=0.01)
    return calls(call("get_weather", {"city": city}, id="call_1"), pace=0.01)


@app(by_user)
def users_at_once_with_equal_ids():
    """Three users at the same time, and a server that counts ids from one in each request."""

    def serve(city):
        messages = [system("Answer about the weather."), user(f"How is it in {city}?")]
        message = chat(messages, WEATHER)
        messages += [message, *(result(one, "-2") for one in message["tool_calls"])]
        print(chat(messages, WEATHER)["content"])

    threads = [
        threading.Thread(target=serve, args=(city,)) for city in ("Riga", "Tartu", "Vilnius")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def for_all(asked):
    """The same for all users."""
    if '"tool"' in asked.text:
        return say("You have two meetings.", pace=0.01)
    return calls(call("my_calendar", {"day": "today"}, id="call_0"), pace=0.01)


@app(for_all)
def users_at_once_with_equal_prompts():
    """Four users ask the same at once; their results differ, and so do not the prompts."""
    tools = [tool("my_calendar", {"day": "string"})]

    def serve(number):
        messages = [user("What is on today?")]
        message = chat(messages, tools)
        one = message["tool_calls"][0]
        messages += [message, result(one, [f"meeting of user {number}", "lunch"])]
        print(chat(messages, tools)["content"])

    threads = [threading.Thread(target=serve, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


SHOTS = [
    user("Weather in Basel?"),
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_0",
                "type": "function",
                "function": {"name": "get_weather", "arguments": '{"city": "Basel"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_0", "content": "11"},
    {"role": "assistant", "content": "11 degrees in Basel."},
]


@app(
    [
        calls(call("get_weather", {"city": "Chur"}, id="call_0")),
        say("8 degrees in Chur."),
        calls(call("get_weather", {"city": "Thun"}, id="call_0")),
        say("9 degrees in Thun."),
    ]
)
def few_shot_examples_with_calls():
    """The prompt holds an example with a call of its own, whose id the server gives, too."""
    for city in ("Chur", "Thun"):
        messages = [system("Follow the example."), *SHOTS, user(f"Weather in {city}?")]
        message = chat(messages, WEATHER)
        messages += [message, *(result(one, "8") for one in message["tool_calls"])]
        print(chat(messages, WEATHER)["content"])


@app(
    [
        calls(
            call("get_weather", {"city": "Pisa"}, id=""),
            call("get_weather", {"city": "Bari"}, id=""),
        ),
        say("Pisa 19, Bari 21."),
    ]
)
def empty_ids():
    """The server sends empty ids; the app makes up its own."""
    messages = [user("Pisa and Bari?")]
    message = chat(messages, WEATHER, model="llama-3.1-8b")
    for number, one in enumerate(message["tool_calls"]):
        one["id"] = one["id"] or f"call_{number}"
    messages += [message, *(result(one, "20") for one in message["tool_calls"])]
    print(chat(messages, WEATHER, model="llama-3.1-8b")["content"])


@app(
    [
        calls(call("lookup", {"word": "saudade"})),
        say("A longing."),
        calls(call("lookup", {"word": "hygge"})),
        say("A cosiness."),
    ]
)
def session_restored_with_new_ids():
    """The session is stored without ids and restored by another process, which makes new ones."""
    tools = [claude_tool("lookup", {"word": "string"})]
    stored = []

    def restored():
        messages = []
        for number, (kind, value) in enumerate(stored):
            if kind == "said":
                messages.append(value)
                continue
            use = {
                "type": "tool_use",
                "id": f"restored_{number}",
                "name": "lookup",
                "input": value[0],
            }
            messages.append({"role": "assistant", "content": [use]})
            messages.append(user([claude_result(use, value[1])]))
        return messages

    for word, meaning in (("saudade", "longing"), ("hygge", "cosiness")):
        stored.append(("said", user(f"What is {word}?")))
        made = claude(restored(), tools)["content"][0]
        stored.append(("call", (made["input"], meaning)))
        answer = claude(restored(), tools)
        stored.append(("said", {"role": "assistant", "content": answer["content"][0]["text"]}))


@app(
    [
        calls(call("get_weather", {"city": "Kyoto"}), call("get_weather", {"city": "Osaka"})),
        say("Kyoto 17, Osaka 19."),
    ]
)
def gemini_has_no_ids():
    """Gemini's calls have no ids; answers come in the order of the calls, by name."""
    tools = gemini_tools(*WEATHER)
    contents = [{"role": "user", "parts": [{"text": "Kyoto and Osaka?"}]}]
    content = gemini(contents, tools)
    answers = [
        {
            "functionResponse": {
                "name": part["functionCall"]["name"],
                "response": {"degrees": degrees},
            }
        }
        for part, degrees in zip(content["parts"], (17, 19), strict=True)
    ]
    contents += [content, {"role": "user", "parts": answers}]
    print(gemini(contents, tools)["parts"][0]["text"])


@app(
    [
        calls(
            call("get_weather", {"city": "Brno"}, id="call_1"),
            call("get_weather", {"city": "Zlin"}, id="call_1"),
        ),
        say("Brno 8, Zlin 7."),
    ]
)
def same_id_for_both_calls_renamed():
    """The server gives both calls one id; the app adds a suffix to tell them apart."""
    messages = [user("Brno and Zlin?")]
    message = chat(messages, WEATHER, model="some-local-model")
    for number, one in enumerate(message["tool_calls"]):
        one["id"] = f"{one['id']}_{number}"
    messages.append(message)
    for one in message["tool_calls"]:
        messages.append(result(one, "8" if arguments(one)["city"] == "Brno" else "7"))
    print(chat(messages, WEATHER, model="some-local-model")["content"])
