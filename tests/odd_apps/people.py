"""Apps in which a person decides: denies, edits, interrupts, stops, goes back, says it twice."""

import json

from .kit import (
    CHAT_MODEL,
    HEADERS,
    app,
    arguments,
    chat,
    claude,
    claude_result,
    claude_tool,
    events,
    openai_url,
    result,
    shared,
    system,
    tool,
    user,
)
from .provider import call, calls, say

FILES = [
    tool("list_files", {"folder": "string"}),
    tool("delete_file", {"path": "string"}),
]


@app(
    [
        calls(
            call("list_files", {"folder": "/tmp/build"}),
            call("delete_file", {"path": "/tmp/build/cache.db"}),
        ),
        say("The folder holds cache.db and app.bin. I left both alone."),
    ]
)
def denied_call_dropped():
    """The user denied the second call; the app takes it out of the history, so the model never
    sees that it was asked."""
    messages = [user("Clean up /tmp/build")]
    message = chat(messages, FILES)
    denied = {"delete_file"}
    message["tool_calls"] = [
        one for one in message["tool_calls"] if one["function"]["name"] not in denied
    ]
    messages.append(message)
    messages += [result(one, "cache.db\napp.bin") for one in message["tool_calls"]]
    print(chat(messages, FILES)["content"])


@app(
    [
        calls(call("delete_file", {"path": "/etc/hosts"}), text="I'll remove the stale file."),
        say("Understood, I won't delete it."),
    ]
)
def denied_call_told():
    """The user denied the call and the model is told so in the result."""
    messages = [user("Remove stale host entries")]
    message = chat(messages, FILES)
    messages.append(message)
    messages += [result(one, "Denied by the user.") for one in message["tool_calls"]]
    print(chat(messages, FILES)["content"])


@app(
    [
        calls(call("delete_file", {"path": "report-old.pdf"}), text="Deleting the old report."),
        say("Okay. These are the files: report.pdf, report-old.pdf."),
    ]
)
def denied_turn_dropped_and_new_request():
    """The user declined and typed something else instead; the declined turn is forgotten whole."""
    messages = [user("Get rid of the old report")]
    chat(messages, FILES)
    messages.append(user("No, don't delete anything! Just tell me what is there."))
    print(chat(messages, FILES)["content"])


@app(
    [
        calls(
            call("send_mail", {"to": "team@example.com", "subject": "Lunch", "body": "At noon?"})
        ),
        say("Sent, with your change to the subject."),
    ]
)
def edited_arguments_told():
    """The user edits the mail before it goes out; history has what was sent and the result says
    who changed it."""
    tools = [tool("send_mail", {"to": "string", "subject": "string", "body": "string"})]
    messages = [user("Ask the team for lunch")]
    message = chat(messages, tools)
    one = message["tool_calls"][0]
    mail = {**arguments(one), "subject": "Lunch on Friday?"}
    one["function"]["arguments"] = json.dumps(mail)
    messages.append(message)
    messages.append(result(one, {"sent": True, "note": "the user edited the arguments"}))
    print(chat(messages, tools)["content"])


@app(
    [
        calls(call("create_event", {"title": "Standup", "start": "09:00", "minutes": 30})),
        say("Your standup is in the calendar."),
    ]
)
def edited_arguments_not_told():
    """The user shortens the event in the review form; history has what was done, nobody says so."""
    tools = [
        claude_tool("create_event", {"title": "string", "start": "string", "minutes": "integer"})
    ]
    messages = [user("Put a standup at nine into my calendar")]
    message = claude(messages, tools)
    block = message["content"][0]
    block["input"]["minutes"] = 15
    messages += [message, user([claude_result(block, "created")])]
    print(claude(messages, tools)["content"])


@app(
    [
        calls(call("run_tests", {"target": "all"}), text="Running the whole suite."),
        say("Sure, only the unit tests then. Shall I start?"),
    ]
)
def interrupted_before_the_result():
    """The user types while the tool runs; the app kills it and says so, then adds the words."""
    tools = [claude_tool("run_tests", {"target": "string"})]
    messages = [user("Check that everything works")]
    message = claude(messages, tools)
    messages.append(message)
    use = next(block for block in message["content"] if block["type"] == "tool_use")
    said = {"type": "text", "text": "wait, only the unit tests please"}
    interrupted = claude_result(use, "[Request interrupted by user for tool use]", is_error=True)
    messages.append(user([interrupted, said]))
    print(claude(messages, tools)["content"])


@app(
    [
        calls(call("search_flights", {"origin": "BER", "destination": "LIS", "day": "2027-05-04"})),
        say("Trains to Lisbon take about two days; shall I look for a night train to Paris first?"),
    ]
)
def call_discarded_when_user_goes_on():
    """A new message of the user cancels the pending call; it never ran and is not kept, though the
    new message follows the old one directly."""
    tools = [tool("search_flights", {"origin": "string", "destination": "string", "day": "string"})]
    messages = [user("I need to get from Berlin to Lisbon on May 4th")]
    chat(messages, tools)
    messages.append(user("actually, are there trains?"))
    print(chat(messages, tools)["content"])


POEM = "The harbour sleeps, the lanterns glow, and all the boats rock to and fro."


@app([say(POEM * 3, pace=0.02), say("A shorter one: boats at rest.")])
def stop_in_text_keeps_the_part():
    """The user presses stop; what was shown stays in the chat and the next turn has it."""
    messages = [system("You are a poet."), user("Write a long poem about a harbour")]
    body = {"model": CHAT_MODEL, "messages": messages, "stream": True}
    shown = ""
    with shared().stream(
        "POST", openai_url() + "/chat/completions", json=body, headers=HEADERS
    ) as response:
        for line in response.iter_lines():
            if line.startswith("data: {"):
                shown += json.loads(line[6:])["choices"][0]["delta"].get("content") or ""
            if len(shown) > 60:
                break
    messages += [{"role": "assistant", "content": shown}, user("too long, shorter please")]
    print(chat(messages)["content"])


@app([say(POEM * 3, pace=0.02, hang=12), say("Boats. Lamps. Night.")])
def stop_in_text_drops_the_part():
    """The user presses stop; this app throws away an answer that was not finished, and puts the
    new words beside the old ones."""
    import anthropic

    ask = anthropic.Anthropic(api_key="none")
    messages = [user("Write a long poem about a harbour")]
    with ask.messages.stream(
        model="claude-sonnet-4-5", max_tokens=500, messages=messages
    ) as stream:
        for count, _ in enumerate(stream.text_stream):
            if count == 4:
                break
    messages = [user("Write a long poem about a harbour\n\nJust three nouns, please.")]
    done = ask.messages.create(model="claude-sonnet-4-5", max_tokens=500, messages=messages)
    print(done.content[0].text)


@app(
    [
        calls(
            call(
                "write_file", {"path": "notes.md", "content": "# Notes\n" + "More to come.\n" * 12}
            ),
            text="I'll write the notes.",
            pace=0.02,
        ),
        say("Okay, I stopped. What should the notes contain?"),
    ]
)
def stop_in_arguments():
    """The user presses stop while the arguments of a call still come; the half call is dropped and
    the words before it stay."""
    tools = [tool("write_file", {"path": "string", "content": "string"})]
    messages = [user("Write notes.md")]
    body = {"model": CHAT_MODEL, "messages": messages, "tools": tools, "stream": True}
    text, received = "", 0
    with shared().stream(
        "POST", openai_url() + "/chat/completions", json=body, headers=HEADERS
    ) as response:
        for line in response.iter_lines():
            if not line.startswith("data: {"):
                continue
            delta = json.loads(line[6:])["choices"][0]["delta"]
            text += delta.get("content") or ""
            for piece in delta.get("tool_calls") or ():
                received += len(piece["function"].get("arguments") or "")
            if received > 40:
                break
    messages += [{"role": "assistant", "content": text}, user("stop, not like that")]
    print(chat(messages, tools)["content"])


@app([say(POEM * 2, pace=0.02), say("Of course: the boats rock to and fro because of the tide.")])
def stop_marked_in_the_history():
    """What was shown stays, with a mark that the user interrupted."""
    messages = [user("Tell me about the harbour")]
    shown = ""
    body = {"model": "claude-sonnet-4-5", "max_tokens": 500, "messages": messages, "stream": True}
    import os

    for event in events(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body):
        if event["type"] == "content_block_delta":
            shown += event["delta"]["text"]
        if len(shown) > 80:
            break
    messages += [
        {"role": "assistant", "content": shown.rstrip() + "\n\n[interrupted by user]"},
        user("why do the boats rock?"),
    ]
    print(claude(messages)["content"])


@app(
    [
        calls(call("weather", {"city": "Paris, Texas"})),
        say("It is 31 degrees in Paris, Texas."),
        calls(call("weather", {"city": "Paris, France"})),
        say("It is 12 degrees in Paris, France."),
    ]
)
def edit_and_resend():
    """The user edits the first message: what followed it is gone, with its call and result."""
    tools = [tool("weather", {"city": "string"})]
    for question, degrees in (("Weather in Paris?", "31 C"), ("Weather in Paris, France?", "12 C")):
        messages = [system("Be short."), user(question)]
        message = chat(messages, tools)
        messages += [message, *(result(one, degrees) for one in message["tool_calls"])]
        print(chat(messages, tools)["content"])


@app(
    [
        say("Why did the chicken cross the road?"),
        say("A man walks into a bar. Ouch."),
        say("Because 'bar' means two things: a pub, and a metal rod."),
    ]
)
def regenerate():
    """The user asks for another answer to the same words: the same request, of which the second
    answer is kept."""
    messages = [user("Tell me a joke")]
    chat(messages)
    messages += [chat(messages), user("I don't get it")]
    print(chat(messages)["content"])


@app(
    [
        calls(call("read_file", {"path": "setup.py"})),
        say("It uses setuptools."),
        say("Branch A: move it to pyproject.toml."),
        say("Branch B: keep setup.py and pin the versions."),
        say("Done: a pyproject.toml with the same metadata."),
    ]
)
def branching_conversation():
    """Two branches of one conversation go on from the same prefix; the first is continued last."""
    tools = [tool("read_file", {"path": "string"})]
    messages = [user("What does setup.py use?")]
    message = chat(messages, tools)
    messages += [message, result(message["tool_calls"][0], "from setuptools import setup")]
    messages.append(chat(messages, tools))
    first = [*messages, user("How could it be modern?")]
    first.append(chat(first, tools))
    second = [*messages, user("How could it stay as it is?")]
    second.append(chat(second, tools))
    print(chat([*first, user("Do that.")], tools)["content"])


@app(
    [
        say("Chapter one: the ship leaves the port."),
        say("Chapter two: the storm."),
        say("Chapter three: the island."),
        say("Chapter four: the way home."),
    ]
)
def user_says_the_same_twice():
    """The user types "continue" again and again; each time it is a new message."""
    messages = [user("Tell me a story in chapters, one at a time")]
    for _ in range(3):
        messages.append(chat(messages))
        messages.append(user("continue"))
    print(chat(messages)["content"])


@app([say("Hello! How can I help?"), say("Yes, I am here.")])
def user_sends_a_message_twice_on_purpose():
    """The user sent "hello?" again since nothing seemed to happen; both stand in the thread, and
    the first answer came to the second only (the app shows it below both)."""
    messages = [user("hello?"), user("hello?")]
    messages.append(chat(messages))
    messages.append(user("hello?"))
    print(chat(messages)["content"])


@app(
    [
        calls(call("transfer", {"iban": "DE02120300000000202051", "amount": 250})),
        say("The transfer waits for a second person."),
        say("It has been approved and carried out."),
    ]
)
def approval_comes_later():
    """A call that needs a second person is answered "pending" at once; the outcome comes as a
    message when there is one."""
    tools = [tool("transfer", {"iban": "string", "amount": "number"})]
    messages = [user("Pay the rent")]
    message = chat(messages, tools)
    messages += [message, result(message["tool_calls"][0], {"status": "pending_approval"})]
    messages.append(chat(messages, tools))
    messages.append(system("approval of the transfer: granted by m.keller, executed"))
    messages.append(user("What about my transfer?"))
    print(chat(messages, tools)["content"])


@app(
    [
        say("Use a list comprehension."),
        say("Use map() then."),
        say("A generator expression is the lazy way."),
    ]
)
def undo_takes_a_turn_back():
    """/undo removes the last question and its answer from the conversation."""
    messages = [user("How do I square all numbers of a list?")]
    messages.append(chat(messages))
    messages.append(user("another way?"))
    chat(messages)
    messages.pop()  # /undo
    messages.append(user("and lazily?"))
    print(chat(messages)["content"])


@app(
    [
        say("Dear Ms Miller, your order has been shipped on Monday and should arrive tomorrow."),
        say("Translated: Sehr geehrte Frau Miller, Ihre Bestellung wurde am Dienstag versandt."),
    ]
)
def user_edits_the_answer():
    """The user corrects the assistant's text in the chat (Monday was wrong) and goes on from it."""
    messages = [user("Tell Ms Miller that her order is on the way")]
    message = chat(messages)
    message["content"] = message["content"].replace("Monday", "Tuesday")
    messages += [message, user("now in German")]
    print(chat(messages)["content"])


@app(
    [
        say(
            "The museum opens at ten, and the tickets are twelve euros for adults, and then",
            pace=0.01,
        ),
        say("Twelve euros."),
    ]
)
def voice_barge_in():
    """A voice assistant was interrupted by speech: the stream was read to its end, but history has
    the words that had been spoken when the user cut in."""
    messages = [system("You speak on the phone."), user("when does the museum open")]
    message = chat(messages)
    spoken = " ".join(message["content"].split()[:5])
    messages += [{"role": "assistant", "content": spoken + "..."}, user("how much is it")]
    print(chat(messages)["content"])


@app(
    [
        say("@ana the deploy is at five. @bo the branch is frozen."),
        say("@ana yes, five o'clock CET."),
    ]
)
def group_chat_with_late_messages():
    """A channel of several people: what was typed while the bot was writing stands before its
    answer, in the order of time."""
    messages = [
        system("You are a bot in a channel."),
        {**user("when is the deploy?"), "name": "ana"},
        {**user("can I still merge?"), "name": "bo"},
    ]
    message = chat(messages)
    messages += [{**user("CET?"), "name": "ana"}, message, {**user("@bot?"), "name": "ana"}]
    print(chat(messages)["content"])


@app(
    [
        calls(
            call("click", {"selector": "#buy"}),
            call("type_text", {"selector": "#card", "text": "4242 4242"}),
            call("click", {"selector": "#pay"}),
        ),
        say("I stopped before paying."),
    ]
)
def stopped_between_the_calls():
    """The user took over the browser after the first of three actions; the rest is told as
    cancelled."""
    import openai

    ask = openai.OpenAI(api_key="sk-none")
    tools = [
        tool("click", {"selector": "string"}),
        tool("type_text", {"selector": "string", "text": "string"}),
    ]
    messages = [user("Buy the blue one")]
    first = ask.chat.completions.create(model=CHAT_MODEL, messages=messages, tools=tools)
    message = first.choices[0].message
    messages.append(message)
    for number, one in enumerate(message.tool_calls):
        told = "ok" if number == 0 else "cancelled: the user took over the browser"
        messages.append({"role": "tool", "tool_call_id": one.id, "content": told})
    stream = ask.chat.completions.create(
        model=CHAT_MODEL, messages=messages, tools=tools, stream=True
    )
    print("".join(event.choices[0].delta.content or "" for event in stream))


@app([say("Which city do you mean?"), say("12 degrees and cloudy in Paris, France.")])
def placeholder_while_waiting():
    """The page puts "..." as the assistant's message while it waits for the user's choice, and
    keeps that instead of the question, which it shows as buttons."""
    messages = [user("weather in paris")]
    chat(messages)
    messages += [
        {"role": "assistant", "content": "[asked the user to choose a city]"},
        user("France"),
    ]
    print(chat(messages)["content"])
