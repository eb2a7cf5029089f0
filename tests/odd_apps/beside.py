"""Requests beside the conversation: titles, moderation, token counts, models, embeddings, pages."""

import http.server
import json
import os
import threading
import time

from .kit import (
    CHAT_MODEL,
    CLAUDE_MODEL,
    HEADERS,
    app,
    chat,
    chat_whole,
    claude,
    claude_result,
    claude_tool,
    client,
    events,
    gemini,
    openai_url,
    post,
    result,
    shared,
    system,
    tool,
    user,
)
from .provider import anthropic_error, call, calls, fails, openai_error, say


def titled(asked):
    """A title, or the answer."""
    if "title" in asked.text[:200]:
        return say("Trip to Rome", pace=0.02)
    if '"tool"' in asked.text:
        return say("Fly on Friday.", pace=0.02)
    return calls(call("flights", {"to": "Rome"}), pace=0.02)


@app(titled)
def title_generated_beside():
    """While the answer streams, another request makes a title of the same first message."""
    tools = [tool("flights", {"to": "string"})]
    messages = [user("I want to go to Rome")]
    beside = threading.Thread(
        target=lambda: chat([system("Write a title."), *messages], http=client(), max_tokens=9)
    )
    beside.start()
    message = chat(messages, tools)
    messages += [message, result(message["tool_calls"][0], "Friday 9:00")]
    print(chat(messages, tools)["content"])
    beside.join()


@app([say("All fine."), say("Bye.")])
def moderation_beside():
    """Each message of the user is moderated first."""
    messages = []
    for text in ("hello", "goodbye"):
        post(openai_url() + "/moderations", {"input": text})
        messages.append(user(text))
        messages.append(chat(messages))


@app(
    [
        calls(call("read", {"path": "a"})),
        say("a is empty."),
    ]
)
def tokens_counted_beside():
    """Tokens are counted before each request, with the same messages."""
    tools = [claude_tool("read", {"path": "string"})]
    messages = [user("Read a")]
    url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages/count_tokens"

    def ask():
        post(url, {"model": CLAUDE_MODEL, "messages": messages, "tools": tools})
        return claude(messages, tools)

    message = ask()
    messages += [message, user([claude_result(message["content"][0], "")])]
    print(ask()["content"])


def no_models(asked):
    """404 for the list of models."""
    if "/models" in asked.path:
        return fails(404, openai_error("Not Found", "invalid_request_error"))
    return say("I answer all the same.")


@app(no_models)
def models_listing_is_missing():
    """The app looks for the list of models, which this server has not, and goes on."""
    print(shared().get(openai_url() + "/models", headers=HEADERS).status_code)
    print(chat([user("hi")])["content"])


@app([say("Shops open at nine.")])
def embeddings_beside():
    """Retrieval: embeddings for the question and the passages, then one answer."""
    import openai

    ask = openai.OpenAI(api_key="sk-none")
    ask.models.list()
    texts = ["Shops open at nine.", "The moon is far away."]
    ask.embeddings.create(model="text-embedding-3-small", input=texts)
    ask.embeddings.create(model="text-embedding-3-small", input=["When do shops open?"])
    with ask.chat.completions.stream(
        model=CHAT_MODEL, messages=[user(f"{texts[0]}\n\nWhen do shops open?")]
    ) as stream:
        print(stream.get_final_completion().choices[0].message.content)


@app([say("pong"), say("The answer is 4."), say("And 9.")])
def warmed_up_first():
    """A request of one token opens the connection and fills the cache of the prompt."""
    prompt = [{"type": "text", "text": "Short. " * 30, "cache_control": {"type": "ephemeral"}}]
    claude([user("ping")], system=prompt, max_tokens=1)
    messages = [user("2+2?")]
    messages += [claude(messages, system=prompt), user("3*3?")]
    print(claude(messages, system=prompt)["content"])


@app(
    [
        say("You could ask: How long? How much?", pace=0.005),
        say("It takes an hour."),
        say("Ten euros."),
    ]
)
def suggestions_from_the_same_history():
    """Follow-up questions are made from the same history, and are no part of it."""
    messages = [user("How do I get to the airport?")]
    chat([*messages, system("Suggest two follow-up questions.")])
    messages += [chat(messages), user("How much?")]
    print(chat(messages)["content"])


@app(
    [
        fails(401, openai_error("Incorrect API key", "invalid_request_error", "invalid_api_key")),
        say("Welcome."),
    ]
)
def key_asked_for_and_tried_again():
    """The key is wrong at first; the app asks for another one and sends the same request."""
    body = {"model": CHAT_MODEL, "messages": [user("hi")]}
    url = openai_url() + "/chat/completions"
    for key in ("sk-wrong", "sk-none"):
        answer = shared().post(url, json=body, headers={"authorization": f"Bearer {key}"})
        print(answer.status_code)


@app(
    [
        fails(
            404,
            openai_error(
                "The model `gpt-9` does not exist", "invalid_request_error", "model_not_found"
            ),
        ),
        say("I am gpt-4.1-mini."),
    ]
)
def falls_back_to_an_older_model():
    """The app tries the newest model and takes the older one if it has no access."""
    import openai

    ask = openai.OpenAI(api_key="sk-none")
    for model in ("gpt-9", CHAT_MODEL):
        try:
            done = ask.responses.create(model=model, input="Who are you?")
        except openai.NotFoundError:
            continue
        print(done.output_text)


@app(
    [
        fails(
            400,
            anthropic_error(
                "invalid_request_error", "prompt is too long: 214512 tokens > 200000 maximum"
            ),
        ),
        say("The text is about whales."),
    ]
)
def prompt_too_long_then_halved():
    """The provider says that the prompt is too long; the app halves the text and asks again."""
    import httpx

    text = "Whales are large. " * 200
    try:
        claude([user(text)])
    except httpx.HTTPStatusError as error:
        if "too long" in error.response.text:
            print(claude([user(text[: len(text) // 2])])["content"])


PAGE = [
    calls(call("inventory", {"article": "lamp"})),
    say("There are four lamps in stock."),
]


@app(
    PAGE,
    options=("--app", "http://127.0.0.1:{page}", "--app-listen", "127.0.0.1:{tap}"),
    arguments=("{page}", "{tap}"),
)
def page_with_its_own_events(page, tap):
    """A page that gets the app's own events by SSE: words, and the state of tools as numbers."""
    tools = [tool("inventory", {"article": "string"})]

    class Page(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def tell(self, kind, **more):
            data = b"data: %b\n\n" % json.dumps({"type": kind, **more}).encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            messages = [user(asked["question"])]
            while (message := chat(messages, tools)).get("tool_calls"):
                messages.append(message)
                for one in message["tool_calls"]:
                    self.tell("progress", step=len(messages), of="inventory")
                    messages.append(result(one, {"lamp": 4}))
            for word in message["content"].split(" "):
                self.tell("text", content=word + " ")
            self.tell("done")
            self.wfile.write(b"0\r\n\r\n")

    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(page)), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    time.sleep(0.2)
    with client() as browser:
        for event in events(f"http://127.0.0.1:{tap}/api/ask", {"question": "lamps?"}, browser):
            print(event)
    server.shutdown()


@app([say("eins"), say("zwei"), say("drei")])
def languages_asked_at_once_by_gemini():
    """Three translations at once of one text, and tokens counted first."""
    base = os.environ["GOOGLE_GEMINI_BASE_URL"]
    contents = [{"role": "user", "parts": [{"text": "one"}]}]
    post(f"{base}/v1beta/models/gemini-2.5-flash:countTokens", {"contents": contents})
    threads = [
        threading.Thread(
            target=lambda word=word: gemini(
                [{"role": "user", "parts": [{"text": f"{word} in German"}]}], http=client()
            )
        )
        for word in ("one", "two", "three")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@app(
    [
        calls(call("find_bug", {"file": "a.c"})),
        say("The loop runs once too often."),
        say("fix loop bound in a.c"),
    ]
)
def commit_message_from_the_conversation():
    """At the end the history is given to a small model for a commit message, without tools."""
    tools = [tool("find_bug", {"file": "string"})]
    messages = [user("Why does it crash?")]
    message = chat(messages, tools)
    messages += [message, result(message["tool_calls"][0], "off by one")]
    messages.append(chat(messages, tools))
    words = [m for m in messages if m["role"] != "tool" and "tool_calls" not in m]
    asked = [*words, user("Write a commit message for that.")]
    print(chat_whole(asked, model="gpt-4.1-nano")["content"])
