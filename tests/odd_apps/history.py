"""Apps that do not send the whole history, or not as it was."""

import copy
import json

from .kit import (
    app,
    arguments,
    chat,
    chat_whole,
    claude,
    claude_result,
    claude_tool,
    flat_tool,
    respond,
    result,
    system,
    tool,
    user,
)
from .provider import call, calls, say

READ = [tool("read_file", {"path": "string"})]


def reads(name):
    """An answer that reads a file."""
    return calls(call("read_file", {"path": name}))


@app(
    [
        reads("a.py"),
        say("a.py defines Shop."),
        reads("b.py"),
        say("b.py defines Cart."),
        say("The user looked at a.py (class Shop) and b.py (class Cart)."),
        say("Shop uses Cart in checkout()."),
    ]
)
def summarised_in_front():
    """When the history grows, the older part is replaced by a summary that the model wrote."""
    messages = [system("You know the code."), user("What is in a.py?")]
    for name, following in (("class Shop", "And b.py?"), ("class Cart", "How do they relate?")):
        message = chat(messages, READ)
        messages += [message, result(message["tool_calls"][0], name)]
        messages += [chat(messages, READ), user(following)]
    summary = chat([user("Summarise:\n" + json.dumps(messages[1:-1]))])["content"]
    messages = [messages[0], system("Summary of what was said: " + summary), messages[-1]]
    print(chat(messages, READ)["content"])


@app(
    [
        calls(call("bash", {"command": "ls"}), text="Let me look around."),
        say("There is a README and a Makefile."),
        say("Summary: the repo has a README and a Makefile; next: build it."),
        calls(call("bash", {"command": "make"})),
        say("It builds."),
    ]
)
def compacted_like_a_coding_agent():
    """/compact: a new conversation begins with the summary as the user's first message."""
    tools = [claude_tool("bash", {"command": "string"})]
    messages = [user("Look around")]
    message = claude(messages, tools)
    messages += [message, user([claude_result(message["content"][1], "README Makefile")])]
    messages.append(claude(messages, tools))
    messages.append(user("Your task is to create a detailed summary of the conversation so far."))
    summary = claude(messages)["content"][0]["text"]
    messages = [
        user(
            "This session is being continued from a previous conversation. "
            + summary
            + "\n\nBuild it."
        )
    ]
    message = claude(messages, tools)
    messages += [message, user([claude_result(message["content"][0], "cc main.c")])]
    print(claude(messages, tools)["content"])


@app(
    [
        reads("1.txt"),
        say("One."),
        reads("2.txt"),
        say("Two."),
        reads("3.txt"),
        say("Three."),
    ]
)
def window_of_the_last_messages():
    """Only the last four messages are sent, though never a result without its call."""
    messages = []
    for number in (1, 2, 3):
        messages.append(user(f"Read {number}.txt"))
        message = chat(messages[-4:] if number > 1 else messages, READ)
        messages += [message, result(message["tool_calls"][0], f"text {number}")]
        messages.append(chat(messages[-3:], READ))
    print(messages[-1]["content"])


IMAGE = (
    "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk" + "=="
)


@app([say("A red square."), say("It was red.")])
def images_replaced():
    """Images are sent once; later turns have a note in their place."""
    picture = {"type": "image_url", "image_url": {"url": IMAGE}}
    messages = [user([{"type": "text", "text": "What is this?"}, picture])]
    message = chat(messages)
    messages[0] = user(
        [{"type": "text", "text": "What is this?"}, {"type": "text", "text": "[image]"}]
    )
    messages += [message, user("Which colour was it?")]
    print(chat(messages)["content"])


@app([reads("big.log"), reads("small.log"), say("Both logs end with a timeout.")])
def old_results_elided():
    """Results older than one turn are cut to save tokens."""
    messages = [user("Compare the logs")]
    message = chat(messages, READ)
    messages += [message, result(message["tool_calls"][0], "line of a log\n" * 20 + "timeout")]
    message = chat(messages, READ)
    messages[2]["content"] = messages[2]["content"][:40] + "... [truncated]"
    messages += [message, result(message["tool_calls"][0], "timeout")]
    print(chat(messages, READ)["content"])


@app(
    [
        calls(call("write_file", {"path": "a.html", "content": "<h1>Title</h1>\n" * 12})),
        calls(call("write_file", {"path": "b.css", "content": "h1 { color: red }"})),
        say("Both files are written."),
    ]
)
def old_arguments_elided():
    """What was written to a file is taken out of old calls: it can be read again."""
    tools = [tool("write_file", {"path": "string", "content": "string"})]
    messages = [user("A page with a red title")]
    message = chat(messages, tools)
    messages += [message, result(message["tool_calls"][0], "ok")]
    old = arguments(message["tool_calls"][0])
    elided = {**old, "content": f"[{len(old['content'])} characters elided]"}
    message["tool_calls"][0]["function"]["arguments"] = json.dumps(elided)
    message = chat(messages, tools)
    messages += [message, result(message["tool_calls"][0], "ok")]
    print(chat(messages, tools)["content"])


@app(
    [
        say(
            "4.", reasoning="Two and two make four, as everybody knows.", model="deepseek-reasoner"
        ),
        say("9.", reasoning="Three times three.", model="deepseek-reasoner"),
    ]
)
def reasoning_not_sent_back():
    """DeepSeek's reasoning_content must not be sent back, so it is not."""
    messages = [user("2+2?")]
    messages.append(chat(messages, model="deepseek-reasoner"))
    messages.append(user("3*3?"))
    print(chat(messages, model="deepseek-reasoner")["content"])


THINKING = {"type": "enabled", "budget_tokens": 1024}


@app(
    [
        calls(
            call("lookup", {"key": "a"}),
            reasoning="I need to look the key up first.",
            text="Looking it up.",
        ),
        say("a is 1.", reasoning="The result says 1."),
        say("You asked about a.", reasoning="The user asks what was asked."),
    ]
)
def thinking_dropped_when_the_turn_is_over():
    """Thinking is kept while calls are open and removed at the user's next message."""
    tools = [claude_tool("lookup", {"key": "string"})]
    more = {"max_tokens": 4000, "thinking": THINKING}
    messages = [user("What is a?")]
    message = claude(messages, tools, **more)
    messages += [message, user([claude_result(message["content"][2], "1")])]
    messages.append(claude(messages, tools, **more))
    for old in messages:
        if old["role"] == "assistant":
            old["content"] = [block for block in old["content"] if block["type"] != "thinking"]
    messages.append(user("What did I ask?"))
    print(claude(messages, tools, **more)["content"])


@app(
    [
        calls(call("add_note", {"text": "milk"})),
        say("Noted at 12:00."),
        say("You have one note."),
    ]
)
def clock_in_the_system_prompt():
    """The system prompt tells the time, so it differs in each request."""
    tools = [tool("add_note", {"text": "string"})]
    messages = [user("Note: milk")]

    def ask(clock):
        return chat([system(f"You keep notes. It is {clock}."), *messages], tools)

    message = ask("2026-11-23 12:00:01")
    messages += [message, result(message["tool_calls"][0], "ok")]
    messages += [ask("2026-11-23 12:00:02"), user("How many notes?")]
    print(ask("2026-11-23 12:00:09")["content"])


@app([say("According to the manual, hold the button."), say("For ten seconds.")])
def context_only_in_the_last_message():
    """What was retrieved goes into the last user message only; the stored message is what the user
    typed."""
    stored = [user("How do I reset it?")]

    def ask(passage):
        last = user(f"Context:\n{passage}\n\nQuestion: {stored[-1]['content']}")
        return chat([*stored[:-1], last])

    stored.append(ask("To reset, hold the button for ten seconds."))
    stored.append(user("How long?"))
    print(ask("Buttons: hold for ten seconds.")["content"])


@app([say("\n\nHello there!  \n"), say("Goodbye!\n")])
def text_trimmed():
    """Text is stripped when it is stored: Anthropic refuses trailing blanks in a last message."""
    messages = [user("hi")]
    message = claude(messages)
    stripped = message["content"][0]["text"].strip()
    messages += [{"role": "assistant", "content": stripped}, user("bye")]
    print(claude(messages)["content"])


@app(
    [
        say("<think>The user greets me. I greet back.</think>\n\nHello!"),
        say("<think>Easy.</think>\n\nFine, thanks."),
    ]
)
def think_tags_removed():
    """What stands between think tags is not sent back, as the model's card says."""
    import re

    messages = [user("hi")]
    message = chat(messages, model="qwen3-32b")
    message["content"] = re.sub(r"<think>.*?</think>\s*", "", message["content"], flags=re.DOTALL)
    messages += [message, user("how are you?")]
    print(chat(messages, model="qwen3-32b")["content"])


@app(
    [
        say("The tower is 330 m high【1†source】 and of iron【2†source】."),
        say("It was built in 1889【1†source】."),
    ]
)
def citations_removed():
    """Marks of sources are taken out of the text that is kept."""
    import re

    messages = [user("How high is the tower?")]
    message = chat(messages)
    message["content"] = re.sub(r"【[^】]*】", "", message["content"])
    messages += [message, user("When was it built?")]
    print(chat(messages)["content"])


@app(
    [
        calls(call("search", {"q": "ferry"}), text="I'll search."),
        say("The ferry leaves at six."),
        say("You're welcome!"),
    ]
)
def messages_of_one_role_merged():
    """Consecutive messages of the assistant are merged into one text, and calls left out: the chat
    page keeps what people see."""
    tools = [tool("search", {"q": "string"})]
    messages = [user("When does the ferry leave?")]
    first = chat(messages, tools)
    second = chat([*messages, first, result(first["tool_calls"][0], "ferry 06:00")], tools)
    seen = first["content"] + "\n" + second["content"]
    messages += [{"role": "assistant", "content": seen}, user("thanks")]
    print(chat(messages, tools)["content"])


@app(
    [
        say("Dear Anna Schmidt, your card 1234 is blocked."),
        say("It can be unblocked by phone, Ms Schmidt."),
    ]
)
def names_pseudonymised():
    """Names and numbers are replaced before they leave the house, and put back for the user."""
    messages = [user("Why does my card not work? [NAME_1], [CARD_1]")]
    message = chat(messages)
    message["content"] = (
        message["content"].replace("Anna Schmidt", "[NAME_1]").replace("1234", "[CARD_1]")
    )
    messages += [message, user("What now?")]
    print(chat(messages)["content"])


@app([say("**Bold** and `code`:\n\n- one\n- two\n"), say("Three comes next.")])
def markdown_stored_as_plain_text():
    """A chat widget stores what it rendered, without the markup."""
    import re

    messages = [user("Show me markdown")]
    message = chat(messages)
    message["content"] = re.sub(r"[*`]|^- ", "", message["content"], flags=re.MULTILINE).strip()
    messages += [message, user("what comes next?")]
    print(chat(messages)["content"])


@app([say("This is a long answer. " * 30), say("It said that it is long.")])
def long_answers_cut():
    """Answers are stored up to 200 characters."""
    messages = [user("Write much")]
    message = chat(messages)
    message["content"] = message["content"][:200] + "…"
    messages += [message, user("What did it say?")]
    print(chat(messages)["content"])


def fifty(asked):
    """A call, then words, fifty times."""
    turn = asked.number // 2
    if asked.number % 2 == 0:
        return calls(call("roll", {"sides": 6 + turn}), pace=0)
    return say(f"A {turn % 6 + 1}.", pace=0)


@app(fifty)
def fifty_turns():
    """A long conversation with a sliding window, not streamed."""
    tools = [tool("roll", {"sides": "integer"})]
    messages = []
    for turn in range(50):
        messages.append(user(f"Roll a die with {6 + turn} sides"))
        message = chat_whole(messages[-5:] if turn > 2 else messages, tools)
        messages += [message, result(message["tool_calls"][0], str(turn % 6 + 1))]
        messages.append(chat_whole(messages[-7:] if turn > 2 else messages, tools))
        if turn > 2:
            messages = messages[-8:]


@app(
    [
        calls(call("get_balance", {"account": "savings"})),
        say("You have 1200."),
        say("That is 1000 pounds."),
    ]
)
def results_put_into_the_system_prompt():
    """What tools said becomes facts in the system prompt, and the calls are erased."""
    tools = [tool("get_balance", {"account": "string"})]
    facts = []

    def prompt():
        return system("You are a bank.\nFacts:\n" + "\n".join(facts))

    question = user("How much do I have?")
    message = chat([prompt(), question], tools)
    facts.append(f"get_balance({arguments(message['tool_calls'][0])}) = 1200 EUR")
    answer = chat([prompt(), question], tools)
    print(chat([prompt(), question, answer, user("In pounds?")], tools)["content"])


@app(
    [
        calls(call("screenshot", {})),
        calls(call("click", {"x": 10, "y": 20})),
        say("The dialog is closed."),
    ]
)
def old_screenshots_dropped():
    """Computer use: only the newest screenshot is kept as an image, older ones as a word."""
    tools = [claude_tool("screenshot"), claude_tool("click", {"x": "integer", "y": "integer"})]
    source = {"type": "base64", "media_type": "image/png", "data": IMAGE.partition(",")[2]}
    messages = [user("Close the dialog")]
    while (message := claude(messages, tools))["content"][0]["type"] == "tool_use":
        for old in messages[1:]:
            if old["role"] == "user":
                old["content"][0]["content"] = [{"type": "text", "text": "[old screenshot]"}]
        shot = [{"type": "image", "source": source}]
        messages += [message, user([claude_result(message["content"][0], shot)])]
    print(message["content"])


@app(
    [
        calls(call("plan", {"steps": ["look", "build", "test"]})),
        calls(call("do_step", {"step": "look"})),
        calls(call("do_step", {"step": "build"})),
        say("Built."),
    ]
)
def each_step_from_a_fresh_prompt():
    """The history is written anew for each step, from a state: no message is ever repeated."""
    tools = [tool("plan", {"steps": {"type": "array"}}), tool("do_step", {"step": "string"})]
    state = {"goal": "build the app", "done": [], "steps": []}
    while True:
        message = chat([system("You are a planner."), user(json.dumps(state))], tools)
        if not message.get("tool_calls"):
            break
        asked = arguments(message["tool_calls"][0])
        state["steps"] = asked.get("steps", state["steps"])
        state["done"] = state["done"] + ([asked["step"]] if "step" in asked else [])
    print(message["content"])


@app(
    [
        calls(call("find", {"q": "x"}), reasoning="Search first."),
        say("x is here.", reasoning="Found."),
        say("Nothing else.", reasoning="Done."),
    ]
)
def reasoning_items_dropped_after_the_turn():
    """Reasoning items are sent back within the turn, and left out once it is over, as the guide
    allows."""
    tools = [flat_tool("find", {"q": "string"})]
    more = {"store": False, "include": ["reasoning.encrypted_content"], "model": "o4-mini"}
    asked = [user("Where is x?")]
    first = respond(asked, tools, **more)
    done = {
        "type": "function_call_output",
        "call_id": first["output"][1]["call_id"],
        "output": "here",
    }
    asked += [*first["output"], done]
    asked += respond(asked, tools, **more)["output"]
    asked = [item for item in asked if item.get("type") != "reasoning"]
    print(respond([*asked, user("Anything else?")], tools, **more)["output"][-1]["content"])


@app(
    [
        say("Guten Tag! Wie kann ich helfen?"),
        say("Natürlich."),
    ]
)
def answers_kept_in_another_language():
    """A translator sits between: the user and the store have English, the model German; what goes
    back is translated again and not what the model said."""
    messages = [user("Hallo")]
    chat(messages)
    messages += [
        {"role": "assistant", "content": "Hallo! Womit kann ich dienen?"},
        user("Hilfst du mir?"),
    ]
    print(chat(messages)["content"])


@app([say("Sure, I can tell you how to pick locks."), say("Let's talk about gardens then.")])
def guardrail_replaces_the_answer():
    """A guardrail withheld the answer; the user saw a fixed sentence, and history has that."""
    messages = [user("How do I pick a lock?")]
    chat(messages)
    messages.append({"role": "assistant", "content": "Sorry, I can't help with that."})
    messages.append(user("Then something else?"))
    print(chat(messages)["content"])


@app([say("Our shop is open till six."), say("On Sundays we are closed.")])
def answers_that_no_model_gave():
    """A greeting of the app's own and an answer from a cache stand in the history as well."""
    messages = [{"role": "assistant", "content": "Hi, I am Robo, your helper!"}, user("till when?")]
    messages.insert(0, system("You are Robo."))
    messages.append(chat(messages))
    messages += [user("do you sell milk?"), {"role": "assistant", "content": "Yes, in aisle 3."}]
    messages.append(user("and on Sunday?"))
    print(chat(messages)["content"])


@app(
    [
        calls(call("get_rate", {"pair": "EURUSD"})),
        say("1.08."),
        say("You asked for a rate."),
    ]
)
def restarted_from_a_checkpoint():
    """Time travel: a graph is resumed before the result of a call, which then is another."""
    tools = [tool("get_rate", {"pair": "string"})]
    messages = [user("EURUSD?")]
    message = chat(messages, tools)
    messages.append(message)
    checkpoint = copy.deepcopy(messages)
    messages.append(result(message["tool_calls"][0], "1.08"))
    chat(messages, tools)
    checkpoint.append(result(message["tool_calls"][0], "market closed"))
    print(chat(checkpoint, tools)["content"])
