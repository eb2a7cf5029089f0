"""Retries, timeouts, hedges; clients that leave as soon as they have what they want."""

import http.client
import json
import os
import signal
import sys
import threading
import time
import urllib.parse

from .kit import (
    CHAT_MODEL,
    CLAUDE_MODEL,
    HEADERS,
    app,
    arguments,
    chat,
    chat_whole,
    claude,
    claude_blocks,
    claude_result,
    claude_tool,
    client,
    events,
    openai_url,
    result,
    shared,
    tool,
    user,
)
from .provider import anthropic_error, call, calls, fails, openai_error, say, sse

LIMIT = openai_error("Rate limit reached for gpt-4.1-mini", "tokens", "rate_limit_exceeded")
LOOK = [tool("look_up", {"key": "string"})]


@app(
    [
        fails(429, LIMIT, headers=(("Retry-After", "1"),)),
        calls(call("look_up", {"key": "a"})),
        fails(429, LIMIT, headers=(("retry-after-ms", "200"),)),
        say("a is 1."),
    ]
)
def retry_after_429():
    """The SDK retries what was rate limited, on either side of a call."""
    import openai

    ask = openai.OpenAI(api_key="sk-none")
    messages = [user("a?")]
    while True:
        done = ask.chat.completions.create(model=CHAT_MODEL, messages=messages, tools=LOOK)
        message = done.choices[0].message
        if not message.tool_calls:
            break
        messages.append(message)
        for one in message.tool_calls:
            messages.append({"role": "tool", "tool_call_id": one.id, "content": "1"})
    print(message.content)


@app(
    [
        fails(500, anthropic_error("api_error", "Internal server error")),
        fails(529, anthropic_error("overloaded_error", "Overloaded")),
        say("Here I am."),
    ]
)
def retry_after_500():
    """Anthropic's SDK retries a server's error twice."""
    import anthropic

    ask = anthropic.Anthropic(api_key="none")
    with ask.messages.stream(
        model=CLAUDE_MODEL, max_tokens=100, messages=[user("are you there?")]
    ) as stream:
        print(stream.get_final_text())


@app([say("Too late.", wait=1.2), say("In time.")])
def timeout_then_again():
    """Nothing came for a while (the app's own patience): the same request once more."""
    import httpx

    messages = [user("Quick: 2+2?")]
    try:
        chat(messages, http=httpx.Client(timeout=0.5))
    except httpx.ReadTimeout:
        print("timed out, again")
        print(chat(messages)["content"])


@app([say("This one stalls in the middle of its words.", hang=4), say("It is Canberra.")])
def stall_then_without_streaming():
    """A read timeout in mid-stream; the second try does not stream, and what was shown is
    replaced."""
    import httpx

    messages = [user("Capital of Australia?")]
    try:
        chat(messages, http=httpx.Client(timeout=httpx.Timeout(5, read=0.7)))
    except httpx.ReadTimeout:
        print("timed out, asking without streaming")
        message = chat_whole(messages)
        print(message["content"])


@app([say("A slow answer " * 6, pace=0.06), say("A quick answer.")])
def hedged_request():
    """The same request is sent twice after 150 ms; the loser is cancelled."""
    import httpx

    body = {"model": CHAT_MODEL, "messages": [user("Hedge me")], "stream": True}
    done = threading.Event()
    answers = []

    def ask():
        with (
            httpx.Client(timeout=10) as one,
            one.stream(
                "POST", openai_url() + "/chat/completions", json=body, headers=HEADERS
            ) as response,
        ):
            text = ""
            for line in response.iter_lines():
                if done.is_set():
                    return
                if line.startswith("data: {"):
                    text += json.loads(line[6:])["choices"][0]["delta"].get("content") or ""
                if line == "data: [DONE]":
                    done.set()
                    answers.append(text)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    threads[0].start()
    time.sleep(0.15)
    threads[1].start()
    for thread in threads:
        thread.join()
    print(answers[0])


@app(
    [
        calls(call("look_up", {"key": "b"}), hang=4),
        say("b is 2.", hang=3),
        say("Bye.", hang=3),
    ]
)
def leaves_after_the_finish_reason():
    """The app stops reading at the finish reason: all that counts has come."""

    def ask(messages):
        body = {"model": CHAT_MODEL, "messages": messages, "tools": LOOK, "stream": True}
        text, made = "", {}
        with (
            client() as http,
            http.stream(
                "POST", openai_url() + "/chat/completions", json=body, headers=HEADERS
            ) as response,
        ):
            for line in response.iter_lines():
                if not line.startswith("data: {"):
                    continue
                choice = json.loads(line[6:])["choices"][0]
                text += choice["delta"].get("content") or ""
                for piece in choice["delta"].get("tool_calls") or ():
                    one = made.setdefault(piece["index"], {"type": "function", "function": {}})
                    one["id"] = piece.get("id") or one["id"]
                    for name, value in piece["function"].items():
                        one["function"][name] = one["function"].get(name, "") + value
                if choice["finish_reason"]:
                    break
        message = {"role": "assistant", "content": text or None}
        return {**message, "tool_calls": list(made.values())} if made else message

    messages = [user("b?")]
    message = ask(messages)
    messages += [message, result(message["tool_calls"][0], "2")]
    messages += [ask(messages), user("bye")]
    print(ask(messages)["content"])


@app([say("Done is done.", hang=4), say("Truly.", hang=4)])
def leaves_after_done():
    """http.client, and the socket is closed at [DONE] without reading the end of the response."""
    url = urllib.parse.urlsplit(openai_url())
    messages = [user("Say done")]
    for _ in range(2):
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=10)
        body = json.dumps({"model": CHAT_MODEL, "messages": messages, "stream": True})
        connection.request(
            "POST", url.path + "/chat/completions", body, {"Content-Type": "application/json"}
        )
        response = connection.getresponse()
        text = ""
        while (line := response.readline().decode().strip()) != "data: [DONE]":
            if line:
                text += json.loads(line[6:])["choices"][0]["delta"].get("content") or ""
        connection.close()
        messages += [{"role": "assistant", "content": text}, user("sure?")]


@app([fails(500, openai_error("upstream exploded " * 400), hang=2000), say("Better now.")])
def leaves_an_error_body():
    """Of an error the app wants the status alone: it closes without reading the body."""
    messages = [user("hello")]
    body = {"model": CHAT_MODEL, "messages": messages, "stream": True}
    with (
        client() as one,
        one.stream("POST", openai_url() + "/chat/completions", json=body) as answer,
    ):
        print("status", answer.status_code)
    time.sleep(0.2)
    print(chat(messages)["content"])


def overloaded(stream):
    """An error event in mid-stream."""
    error = anthropic_error("overloaded_error", "Overloaded")
    return [*stream[:6], sse(error, "error"), *stream[6:]]


@app(
    [
        say("The answer breaks off here and now.", change=overloaded, hang=7),
        say("Here it is, whole."),
    ]
)
def leaves_after_an_error_event():
    """Anthropic says in mid-stream that it is overloaded; the app leaves at once and asks again."""
    messages = [user("Tell me")]
    try:
        claude(messages)
    except ConnectionError as error:
        print(error)
    time.sleep(0.1)
    print(claude(messages)["content"])


@app(
    [
        calls(call("look_up", {"key": "c"}), text="Let me look."),
        say("c is 3."),
    ]
)
def not_streamed():
    """A script without streaming, with requests."""
    import requests

    messages = [user("c?")]
    while True:
        body = {"model": CHAT_MODEL, "messages": messages, "tools": LOOK}
        done = requests.post(openai_url() + "/chat/completions", json=body, timeout=10).json()
        message = done["choices"][0]["message"]
        messages.append(message)
        if "tool_calls" not in message:
            break
        messages += [result(one, "3") for one in message["tool_calls"]]
    print(message["content"])


@app([calls(call("train_model", {"epochs": 100})), say("The model is trained.")])
def slow_tool():
    """A tool that takes long; the connection is gone when it is done."""
    tools = [tool("train_model", {"epochs": "integer"})]
    messages = [user("Train it")]
    with client() as http:
        message = chat(messages, tools, http=http)
    time.sleep(2)
    messages += [message, result(message["tool_calls"][0], "accuracy 0.93")]
    print(chat(messages, tools)["content"])


@app([say("slow but steady " * 4, pings=True, pace=0.03), say("yes")])
def keepalive_comments():
    """The gateway sends comments to keep the stream alive."""
    messages = [user("Go on")]
    messages += [chat(messages), user("ok?")]
    print(chat(messages)["content"])


@app([say("An answer that is never read to its end. " * 8, pace=0.05)], exit_code=130)
def killed_by_ctrl_c():
    """Ctrl-C in mid-stream."""
    body = {"model": CHAT_MODEL, "messages": [user("Talk")], "stream": True}
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
    for number, event in enumerate(events(openai_url() + "/chat/completions", body)):
        print(event["choices"][0]["delta"].get("content") or "", end="")
        if number == 5:
            os.kill(os.getpid(), signal.SIGINT)


@app([calls(call("check_disk", {"path": "/"}), text="I'll check.")], exit_code=1)
def ends_with_1_for_its_own_reasons():
    """The app is a check for cron: it ends with 1, since the disk is full."""
    tools = [tool("check_disk", {"path": "string"})]
    message = chat([user("Is the disk full?")], tools)
    print(arguments(message["tool_calls"][0]), "-> 97 % full")
    sys.exit(1)


@app([say("Good morning."), say("Good morning."), say("Ok."), say("Ok.")], times=2)
def started_twice():
    """One tape of an app that was started twice, with the same words each time."""
    messages = [user("Good morning")]
    messages += [chat(messages), user("What did I say?")]
    chat(messages)


def broken(asked):
    """A stream that is cut, then answers."""
    if asked.number == 0:
        return calls(call("look_up", {"key": "a long key that takes a while to say"}), cut=5)
    return say("d is 4.") if '"tool"' in asked.text else calls(call("look_up", {"key": "d"}))


@app(broken)
def cut_call_not_run():
    """The stream broke off in a call: the app throws it away and asks again."""
    import httpx

    messages = [user("d?")]
    try:
        message = chat(messages, LOOK)
    except httpx.RemoteProtocolError as error:
        print("stream broke:", error)
        message = chat(messages, LOOK)
    messages += [message, result(message["tool_calls"][0], "4")]
    print(chat(messages, LOOK)["content"])


@app(
    [
        say(
            "The first part of a long text, which the limit of tokens cuts in the mid",
            finish="length",
        ),
        say("dle of a word, and here is its end."),
        say("You're welcome."),
    ]
)
def continued_after_the_limit():
    """An answer that ended by its limit is continued; history has both parts as one message."""
    messages = [user("Write a text")]
    first = chat(messages, max_tokens=20)
    more = chat([*messages, first, user("Continue exactly where you stopped.")], max_tokens=20)
    messages.append({"role": "assistant", "content": first["content"] + more["content"]})
    print(chat([*messages, user("thanks")])["content"])


@app(
    [
        calls(call("write_file", '{"path": "a.txt", "content": "Once upon a ti'), finish="length"),
        calls(call("write_file", {"path": "a.txt", "content": "Once upon a time."})),
        say("Written."),
    ]
)
def call_cut_by_the_limit_asked_again():
    """A call that ended by the limit of tokens is not run: the same request with a higher limit."""
    tools = [tool("write_file", {"path": "string", "content": "string"})]
    messages = [user("Write a story to a.txt")]
    message = chat(messages, tools, max_tokens=16)
    try:
        arguments(message["tool_calls"][0])
    except ValueError:
        message = chat(messages, tools, max_tokens=4096)
    messages += [message, result(message["tool_calls"][0], "ok")]
    print(chat(messages, tools)["content"])


@app(
    [
        calls(call("write_file", '{"path": "b.txt", "content": "Once upon a ti'), finish="length"),
        calls(call("write_file", {"path": "b.txt", "content": "Short."})),
        say("Written."),
    ]
)
def call_cut_by_the_limit_told():
    """The model is told that its call was cut; the call stands in the history with empty input,
    since half JSON is refused."""
    tools = [claude_tool("write_file", {"path": "string", "content": "string"})]
    messages = [user("Write a story to b.txt")]
    use = None
    body = {
        "model": CLAUDE_MODEL,
        "max_tokens": 30,
        "messages": messages,
        "tools": tools,
        "stream": True,
    }
    for event in events(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body):
        if event["type"] == "content_block_start":
            use = event["content_block"]
    told = "Your call was cut by max_tokens and not run. Write less."
    messages += [
        {"role": "assistant", "content": [{**use, "input": {}}]},
        user([claude_result(use, told, is_error=True)]),
    ]
    message = claude(messages, tools)
    messages += [message, user([claude_result(message["content"][0], "ok")])]
    print(claude(messages, tools)["content"])


PARIS = "The capital of France is Paris, which lies on the Seine."


@app([say(PARIS, pace=0.02), say(PARIS, pace=0.02, wait=0.2)])
def two_providers_raced():
    """OpenAI and Anthropic are asked at once; the first word wins and the other is left."""
    won = threading.Event()

    def one(url, body):
        with client() as http:
            for event in events(url, body, http):
                if won.is_set():
                    return
                if event.get("type") == "message_stop" or (
                    event.get("choices") and event["choices"][0]["finish_reason"]
                ):
                    won.set()

    messages = [user("Capital of France?")]
    asked = [
        (openai_url() + "/chat/completions", {"model": CHAT_MODEL}),
        (
            os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
            {"model": CLAUDE_MODEL, "max_tokens": 50},
        ),
    ]
    threads = [
        threading.Thread(target=one, args=(url, {**body, "messages": messages, "stream": True}))
        for url, body in asked
    ]
    for thread in threads:
        thread.start()
        time.sleep(0.05)
    for thread in threads:
        thread.join()


@app(
    [
        calls(
            call("look_up", {"key": "e"}),
            call("look_up", {"key": "f"}),
            text="I look up both of them now.",
            pace=0.03,
        ),
        say("e is 5."),
    ]
)
def runs_a_call_while_the_rest_streams():
    """As soon as the first call is whole the app has enough: it leaves, and goes on with that."""
    tools = [claude_tool("look_up", {"key": "string"})]
    messages = [user("e, and perhaps f?")]
    body = {
        "model": CLAUDE_MODEL,
        "max_tokens": 99,
        "messages": messages,
        "tools": tools,
        "stream": True,
    }

    def until_first_call():
        with client() as http:
            inside = False
            for event in events(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body, http):
                yield event
                if event["type"] == "content_block_start":
                    inside = event["content_block"]["type"] == "tool_use"
                if event["type"] == "content_block_stop" and inside:
                    return

    blocks = claude_blocks(until_first_call())
    messages += [{"role": "assistant", "content": blocks}, user([claude_result(blocks[-1], "5")])]
    print(claude(messages, tools)["content"])


@app([fails(503, "<html><body><h1>503 Service Unavailable</h1></body></html>"), say("Back again.")])
def maintenance_page():
    """The gateway has a page of maintenance; the app waits and asks again."""
    import httpx

    try:
        chat([user("hi")])
    except httpx.HTTPStatusError:
        time.sleep(0.2)
        print(chat([user("hi")])["content"])


@app([say("Background work is done."), say("Thanks noted.")])
def background_response_polled():
    """A response in the background that is cancelled by another thread of the app: it is closed
    as soon as the first event came, and asked for anew without streaming."""
    url = openai_url() + "/responses"
    body = {"model": CHAT_MODEL, "input": "Do it", "stream": True, "background": True}
    with shared().stream("POST", url, json=body, headers=HEADERS) as response:
        for _ in response.iter_lines():
            break
    print(shared().post(url, json={"model": CHAT_MODEL, "input": "Do it"}).json()["status"])


@app([say("one two three four five six seven eight nine ten", pace=0.02)] * 2)
def reads_as_much_as_it_shows():
    """A status bar shows three words: the app leaves when it has them, on purpose, each time."""
    for _ in range(2):
        words = ""
        body = {"model": CHAT_MODEL, "input": "Count", "stream": True}
        with client() as http:
            for event in events(openai_url() + "/responses", body, http):
                if event["type"] == "response.output_text.delta":
                    words += event["delta"]
                if len(words.split()) > 3:
                    break
    print(words)
