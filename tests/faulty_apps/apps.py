"""Faults of apps."""

import asyncio
import json
import threading

from odd_apps.kit import (
    CHAT_MODEL,
    arguments,
    chat,
    chat_message,
    claude,
    claude_result,
    claude_tool,
    client,
    events,
    flat_tool,
    gemini,
    gemini_tools,
    openai_url,
    respond,
    result,
    system,
    tool,
    user,
)
from odd_apps.provider import anthropic_error, call, calls, fails, openai_error, say

from .kit import fault

HELP = "You help customers of a shop for garden tools."


@fault(
    [
        say("Ann, your spade A17 was sent on Monday with parcel number 00340434161."),
        say("Bob, your refund of 19.90 euros for the rake was paid yesterday."),
        say("It should arrive tomorrow."),
        say("It takes two days."),
    ]
)
def reply_in_another_history(*, healthy):
    """The last answer is kept in one variable for all users: Ann's history gets Bob's."""
    last = {}
    histories = {
        "ann": [system(HELP), user("Where is my spade A17?")],
        "bob": [system(HELP), user("Where is my refund for the rake?")],
    }
    for name, messages in histories.items():
        last["all"] = last[name] = chat(messages)
    for name, question in (("ann", "When will it arrive?"), ("bob", "How long does it take?")):
        answer = last[name if healthy else "all"]
        chat([*histories[name], answer, user(question)])


ORDERS = [tool("get_order", {"order": "string"})]


@fault(
    [
        calls(call("get_order", {"order": "A17"})),
        say("Your spade is on its way."),
        calls(call("get_order", {"order": "B42"})),
        say("Your rake is being packed."),
    ]
)
def result_in_another_history(*, healthy):
    """Results of all users go into one list: Bob's history gets the result of Ann's call, too."""
    results = []
    for name, order, article in (("Ann Lee", "A17", "spade"), ("Bob Ray", "B42", "rake")):
        messages = [system(HELP), user(f"I am {name}. Where is {order}?")]
        message = chat(messages, ORDERS)
        if healthy:
            results = []
        told = {"order": order, "customer": name, "article": article, "state": "sent"}
        results.append(result(message["tool_calls"][0], told))
        chat([*messages, message, *results], ORDERS)


@fault(
    [
        say("The spade A17 was sent on Monday with parcel number 00340434161."),
        say("The refund of 19.90 euros for the rake was paid yesterday."),
        say("It should arrive tomorrow."),
        say("It takes two days."),
    ]
)
def replies_swapped(*, healthy):
    """Answers are matched to conversations in the order of their end, not by conversation."""
    asked = [
        [system(HELP), user("Where is my spade A17?")],
        [system(HELP), user("Where is my refund for the rake?")],
    ]
    answers = [chat(messages) for messages in asked]
    if not healthy:
        answers.reverse()
    questions = ("When will it arrive?", "How long does it take?")
    for messages, answer, question in zip(asked, answers, questions, strict=True):
        chat([*messages, answer, user(question)])


@fault(
    [
        calls(call("weather", {"city": "Rome"}), call("weather", {"city": "Oslo"})),
        say("Rome has -4 degrees and Oslo 24."),
    ]
)
def results_swapped(*, healthy):
    """Results are zipped with the calls in the order in which they came back."""
    tools = [tool("weather", {"city": "string"})]
    messages = [user("Weather in Rome and Oslo?")]
    message = chat(messages, tools)
    came_back = [{"city": "Oslo", "degrees": -4}, {"city": "Rome", "degrees": 24}]
    if healthy:
        came_back.reverse()
    messages.append(message)
    messages += [result(*pair) for pair in zip(message["tool_calls"], came_back, strict=True)]
    chat(messages, tools)


WHALES = "Whales breathe air at the surface, and dive for up to two hours."


@fault([say(WHALES), say("About ninety minutes.")])
def first_fragment_lost(*, healthy):
    """The first delta hides the spinner, and its text is forgotten."""
    messages = [user("How do whales breathe?")]
    body = {"model": CHAT_MODEL, "messages": messages, "stream": True}
    text, spinner = "", True
    for event in events(openai_url() + "/chat/completions", body):
        piece = event["choices"][0]["delta"].get("content")
        if not piece:
            continue
        if spinner:
            spinner = False
            if not healthy:
                continue
        text += piece
    chat([*messages, {"role": "assistant", "content": text}, user("How long do they dive?")])


@fault([say(WHALES), say("About ninety minutes.")])
def text_doubled(*, healthy):
    """Deltas are added up, and the whole text of the done event once more."""
    asked = [user("How do whales breathe?")]
    text = ""
    body = {"model": CHAT_MODEL, "input": asked, "stream": True, "store": False}
    for event in events(openai_url() + "/responses", body):
        if event["type"] == "response.output_text.delta":
            text += event["delta"]
        elif event["type"] == "response.output_text.done" and not healthy:
            text += event["text"]
    respond([*asked, {"role": "assistant", "content": text}, user("How long?")], store=False)


@fault([say("Das Café Größenwahn schließt um fünf – schöne Grüße!"), say("Am Markt.")])
def text_mojibake(*, healthy):
    """requests reads a stream without a charset as Latin-1."""
    import requests

    messages = [user("Wann schließt das Café?")]
    text = ""
    body = {"model": CHAT_MODEL, "messages": messages, "stream": True}
    response = requests.post(openai_url() + "/chat/completions", json=body, stream=True, timeout=9)
    response.encoding = "utf-8" if healthy else "iso-8859-1"
    for line in response.iter_lines(decode_unicode=True):
        if line.startswith("data: {"):
            text += json.loads(line[6:])["choices"][0]["delta"].get("content") or ""
    chat([*messages, {"role": "assistant", "content": text}, user("Wo ist es?")])


THINKING = {"max_tokens": 4000, "thinking": {"type": "enabled", "budget_tokens": 2000}}
LOOK = [claude_tool("look_up", {"key": "string"})]
THOUGHT = "The user wants the value of a key. I have a tool for that, so I should call it first."
THOUGHTFUL = calls(call("look_up", {"key": "a"}), reasoning=THOUGHT, text="Let me look.")


def refused(text):
    """Anthropic's refusal of a history."""
    return fails(400, anthropic_error("invalid_request_error", text))


@fault(
    [THOUGHTFUL, refused("messages.1.content.0: Invalid `signature` in `thinking` block")],
    [THOUGHTFUL, say("a is 1.", reasoning="It is 1.")],
)
def thinking_cut(*, healthy):
    """The store cuts long texts, also the thinking that must come back as it was."""
    import httpx

    messages = [user("What is a?")]
    message = claude(messages, LOOK, **THINKING)
    if not healthy:
        message["content"][0]["thinking"] = message["content"][0]["thinking"][:32] + "..."
    messages += [message, user([claude_result(message["content"][2], "1")])]
    try:
        claude(messages, LOOK, **THINKING)
    except httpx.HTTPStatusError as error:
        print(error.response.text)


@fault(
    [THOUGHTFUL, refused("messages.1.content.0.thinking.signature: Field required")],
    [THOUGHTFUL, say("a is 1.", reasoning="It is 1.")],
)
def signature_lost(*, healthy):
    """signature_delta is unknown to the app, so thinking comes back without its signature."""
    import httpx

    messages = [user("What is a?")]
    message = claude(messages, LOOK, **THINKING)
    if not healthy:
        del message["content"][0]["signature"]
    messages += [message, user([claude_result(message["content"][2], "1")])]
    try:
        claude(messages, LOOK, **THINKING)
    except httpx.HTTPStatusError as error:
        print(error.response.text)


REASONED = calls(call("look_up", {"key": "b"}), reasoning="The tool knows b.")


@fault(
    [
        REASONED,
        fails(
            400,
            openai_error(
                "Item 'fc_1' of type 'function_call' was provided without its required "
                "'reasoning' item: 'rs_1'.",
                "invalid_request_error",
            ),
        ),
    ],
    [REASONED, say("b is 2.")],
)
def reasoning_items_lost(*, healthy):
    """Only messages and calls of the output are kept, not the reasoning that belongs to the
    call."""
    import httpx

    more = {"model": "o4-mini", "store": False, "include": ["reasoning.encrypted_content"]}
    tools = [flat_tool("look_up", {"key": "string"})]
    asked = [user("What is b?")]
    output = respond(asked, tools, **more)["output"]
    if not healthy:
        output = [item for item in output if item["type"] != "reasoning"]
    call_id = output[-1]["call_id"]
    done = {"type": "function_call_output", "call_id": call_id, "output": "2"}
    try:
        respond([*asked, *output, done], tools, **more)
    except httpx.HTTPStatusError as error:
        print(error.response.text)


SIGNED = calls(
    call("look_up", {"key": "c"}, signature="CiQBVKhc7kUd0W5m2Yp+thought+signature+AAE=")
)


@fault(
    [
        SIGNED,
        fails(
            400,
            {
                "error": {
                    "code": 400,
                    "message": "Function call is missing a thought_signature.",
                    "status": "INVALID_ARGUMENT",
                }
            },
        ),
    ],
    [SIGNED, say("c is 3.")],
)
def thought_signature_lost(*, healthy):
    """The model's part is rebuilt from name and arguments, without its thoughtSignature."""
    import httpx

    tools = gemini_tools(tool("look_up", {"key": "string"}))
    contents = [{"role": "user", "parts": [{"text": "What is c?"}]}]
    content = gemini(contents, tools)
    if not healthy:
        content = {
            "role": "model",
            "parts": [{"functionCall": part["functionCall"]} for part in content["parts"]],
        }
    answer = {"functionResponse": {"name": "look_up", "response": {"value": 3}}}
    try:
        gemini([*contents, content, {"role": "user", "parts": [answer]}], tools)
    except httpx.HTTPStatusError as error:
        print(error.response.text)


WRITE = [tool("write_file", {"path": "string", "content": "string"})]
STORY = {"path": "story.txt", "content": "Once upon a time there was a fox who lived by the sea."}


def completed(text):
    """Half JSON, closed so that it parses."""
    text = text + '"' if text.count('"') % 2 else text
    return text + "}"


@fault(
    [calls(call("write_file", STORY), cut=6), say("The story is written.")],
    [calls(call("write_file", STORY)), say("The story is written.")],
)
def cut_call_completed_and_run(*, healthy):
    """The connection broke in the arguments; the app closes the JSON and runs the call."""
    import httpx

    messages = [user("Write a story to story.txt")]
    body = {"model": CHAT_MODEL, "messages": messages, "tools": WRITE, "stream": True}
    seen = []
    try:
        for event in events(openai_url() + "/chat/completions", body):
            seen.append(event)
    except httpx.RemoteProtocolError as error:
        print(error)
    message = chat_message(seen)
    one = message["tool_calls"][0]
    if not healthy:
        one["function"]["arguments"] = completed(one["function"]["arguments"])
    size = len(arguments(one)["content"])
    chat([*messages, message, result(one, f"{size} characters written")], WRITE)


@fault(
    [
        calls(call("write_file", json.dumps(STORY)[:62]), finish="length"),
        say("The story is written."),
    ],
    [
        calls(call("write_file", json.dumps(STORY)[:62]), finish="length"),
        calls(call("write_file", STORY)),
        say("The story is written."),
    ],
)
def call_ended_by_length_run(*, healthy):
    """The limit of tokens cut the call; the app closes the JSON and writes half a story."""
    messages = [user("Write a story to story.txt")]
    message = chat(messages, WRITE, max_tokens=16)
    one = message["tool_calls"][0]
    if healthy:
        message = chat(messages, WRITE, max_tokens=1000)
        one = message["tool_calls"][0]
    else:
        one["function"]["arguments"] = completed(one["function"]["arguments"])
    size = len(arguments(one)["content"])
    chat([*messages, message, result(one, f"{size} characters written")], WRITE)


@fault(
    [calls(call("find_user", {"email": "kim@example.com"})), say("I can't read the result.")],
    [calls(call("find_user", {"email": "kim@example.com"})), say("Kim Lee, Seoul.")],
    source="result-not-serialised.mjs",
)
def result_not_serialised(*, healthy):
    """A template string makes [object Object] of the result."""


@fault(
    [calls(call("find_user", {"email": "kim@example.com"})), say("I can't read the result.")],
    [calls(call("find_user", {"email": "kim@example.com"})), say("Kim Lee, Seoul.")],
)
def result_never_awaited(*, healthy):
    """str() of a coroutine that nobody awaited."""
    import warnings

    warnings.simplefilter("ignore")

    async def find_user(email):
        return {"email": email, "name": "Kim Lee"}

    async def work():
        tools = [tool("find_user", {"email": "string"})]
        messages = [user("Who is kim@example.com?")]
        message = chat(messages, tools)
        one = message["tool_calls"][0]
        found = find_user(**arguments(one))
        if healthy:
            found = await found
        messages += [message, result(one, str(found))]
        chat(messages, tools)

    asyncio.run(work())


@fault(
    [
        say("You're welcome! Anything else that I can do for you today?", pace=0.02),
        say("You're welcome! Anything else that I can do for you today?", pace=0.02),
        say("Bye!"),
    ],
    [say("You're welcome! Anything else that I can do for you today?"), say("Bye!")],
)
def request_sent_twice(*, healthy):
    """The handler of the button is registered twice: each click asks twice, at the same time."""
    messages = [user("thanks")]
    answers = []

    def on_click():
        with client() as http:
            answers.append(chat(messages, http=http, temperature=0))

    clicks = [threading.Thread(target=on_click) for _ in range(1 if healthy else 2)]
    for one in clicks:
        one.start()
    for one in clicks:
        one.join()
    chat([*messages, answers[-1], user("no, bye")])


@fault([say("Bonn was it until 1990."), say("Berlin has 3.8 million people."), say("Yes.")])
def user_message_twice(*, healthy):
    """Both the form and the request append the user's message."""
    messages = []
    for text in ("What was the capital of Germany?", "How many live in the new one?", "Really?"):
        messages.append(user(text))
        if not healthy:
            messages.append(user(text))
        messages.append(chat(messages))


@fault(
    [
        say("A llama is an animal of the Andes."),
        say("What do you mean by it?"),
        say("I don't know what you mean."),
    ]
)
def answers_never_kept(*, healthy):
    """The app keeps what the user says, and never what the model answered."""
    messages = [system("Be friendly.")]
    for text in ("What is a llama?", "What does it eat?", "And where does it sleep?"):
        messages.append(user(text))
        answer = chat(messages)
        if healthy:
            messages.append(answer)


@fault(
    [
        say("Arr, the sea be calm."),
        say("Arr, three masts."),
        say("Hello! How can I help?"),
    ]
)
def system_prompt_lost(*, healthy):
    """The window of the last four messages pushes the system prompt out."""
    messages = [system("You are a pirate, and never say that you are an AI.")]
    for text in ("How is the sea?", "How many masts has the ship?", "Who are you?"):
        messages.append(user(text))
        window = messages[-4:]
        if healthy and messages[0] not in window:
            window = [messages[0], *window]
        messages.append(chat(window))


@fault(
    [
        calls(call("get_weather", {"city": "Kiel"})),
        say("I can't look that up."),
    ],
    [
        calls(call("get_weather", {"city": "Kiel"})),
        say("Kiel: 9 degrees."),
    ],
)
def called_tool_withdrawn(*, healthy):
    """The app picks tools by words of the last message, and a result has none of them."""
    known = {"weather": tool("get_weather", {"city": "string"}), "time": tool("get_time", {})}
    messages = [user("How is the weather in Kiel, and what time is it?")]

    def picked():
        text = messages[0 if healthy else -1]["content"]
        return [one for word, one in known.items() if word in text or word == "time"]

    message = chat(messages, picked())
    messages += [message, result(message["tool_calls"][0], "9 degrees, rain")]
    chat(messages, picked())
