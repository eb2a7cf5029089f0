"""Apps that change the provider, the dialect, the model or the tools in mid-conversation."""

import json
import re

from .kit import (
    app,
    arguments,
    chat,
    claude,
    claude_result,
    claude_tool,
    flat_tool,
    gemini,
    gemini_tools,
    ollama,
    respond,
    result,
    system,
    tool,
    user,
)
from .provider import anthropic_error, call, calls, fails, openai_error, say

SEARCH = {"query": "string"}


def as_claude(messages):
    """The history of chat completions as Anthropic's."""
    made = []
    for message in messages:
        if message["role"] == "tool":
            block = {
                "type": "tool_result",
                "tool_use_id": message["tool_call_id"],
                "content": message["content"],
            }
            made.append(user([block]))
        elif message["role"] == "assistant":
            blocks = [{"type": "text", "text": message["content"]}] if message["content"] else []
            blocks += [
                {
                    "type": "tool_use",
                    "id": one["id"],
                    "name": one["function"]["name"],
                    "input": arguments(one),
                }
                for one in message.get("tool_calls", ())
            ]
            made.append({"role": "assistant", "content": blocks})
        else:
            made.append(message)
    return made


@app(
    [
        calls(call("search", {"query": "best pizza naples"})),
        say("Da Michele is the classic."),
        say("Closed on Sundays, says its page."),
    ]
)
def openai_then_anthropic():
    """The user picks another provider in the menu; the history is translated."""
    messages = [user("Best pizza in Naples?")]
    message = chat(messages, [tool("search", SEARCH)])
    messages += [message, result(message["tool_calls"][0], "Da Michele")]
    messages += [chat(messages, [tool("search", SEARCH)]), user("Open on Sundays?")]
    print(claude(as_claude(messages), [claude_tool("search", SEARCH)])["content"])


@app(
    [
        calls(
            call("search", {"query": "tides kiel"}), text="Looking.", reasoning="I should search."
        ),
        say("High tide is at noon."),
        say("Low tide is at six."),
    ]
)
def anthropic_then_gemini():
    """From Anthropic to Gemini: ids and thinking have no place there."""
    tools = [claude_tool("search", SEARCH)]
    messages = [user("Tides in Kiel?")]
    message = claude(
        messages, tools, thinking={"type": "enabled", "budget_tokens": 1024}, max_tokens=4096
    )
    use = message["content"][-1]
    done = [message, user([claude_result(use, "high tide 12:00")])]
    answer = claude([*messages, *done], tools)
    contents = [
        {"role": "user", "parts": [{"text": "Tides in Kiel?"}]},
        {
            "role": "model",
            "parts": [
                {"text": "Looking."},
                {"functionCall": {"name": "search", "args": use["input"]}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "search", "response": {"result": "high tide 12:00"}}}
            ],
        },
        {"role": "model", "parts": [{"text": answer["content"][0]["text"]}]},
        {"role": "user", "parts": [{"text": "And low tide?"}]},
    ]
    print(gemini(contents, gemini_tools(tool("search", SEARCH)))["parts"])


@app(
    [
        calls(call("search", {"query": "violin makers"})),
        fails(404, openai_error("Not found", "invalid_request_error")),
        say("In Cremona."),
    ]
)
def responses_then_chat():
    """A gateway has no Responses for the second model, so the app goes on by chat completions."""
    import httpx

    asked = [user("Where are violins made?")]
    item = respond(asked, [flat_tool("search", SEARCH)])["output"][0]
    done = {"type": "function_call_output", "call_id": item["call_id"], "output": "Cremona"}
    try:
        respond([*asked, item, done], [flat_tool("search", SEARCH)], model="llama-4")
    except httpx.HTTPStatusError:
        function = {"name": item["name"], "arguments": item["arguments"]}
        one = {"id": item["call_id"], "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [one]}
        messages = [*asked, message, result(one, "Cremona")]
        print(chat(messages, [tool("search", SEARCH)], model="llama-4")["content"])


@app(
    [
        calls(call("search", {"query": "moon phase"})),
        fails(529, anthropic_error("overloaded_error", "Overloaded")),
        say("It is full."),
    ]
)
def other_provider_after_overload():
    """Anthropic is overloaded in the middle of a turn: the turn goes on at OpenAI."""
    import httpx

    messages = [user("Moon phase?")]
    message = claude(messages, [claude_tool("search", SEARCH)])
    use = message["content"][0]
    more = [message, user([claude_result(use, "full")])]
    try:
        claude([*messages, *more], [claude_tool("search", SEARCH)])
    except httpx.HTTPStatusError:
        function = {"name": "search", "arguments": json.dumps(use["input"])}
        one = {"id": use["id"], "type": "function", "function": function}
        messages += [{"role": "assistant", "tool_calls": [one]}, result(one, "full")]
        print(chat(messages, [tool("search", SEARCH)])["content"])


@app(
    [
        calls(call("search", {"query": "height of K2"})),
        say("Final Answer: 8611 m"),
    ]
)
def calls_as_react_text():
    """The second model knows no tools: call and result are written as Thought, Action and
    Observation."""
    messages = [user("How high is K2?")]
    one = chat(messages, [tool("search", SEARCH)])["tool_calls"][0]["function"]
    text = f"Thought: I need to search.\nAction: {one['name']}\nAction Input: {one['arguments']}"
    messages = [
        system("Answer with Thought, Action, Action Input, Observation, Final Answer."),
        *messages,
        {"role": "assistant", "content": text},
        user("Observation: 8611 m"),
    ]
    print(chat(messages, model="gemma-3-4b")["content"])


@app(
    [
        say("Thought: look it up.\nAction: search\nAction Input: capital of Peru\n", finish="stop"),
        say("Final Answer: Lima"),
    ]
)
def react_with_stop_word():
    """ReAct without any tools on the wire: a stop word, and the observation as the user's words."""
    messages = [system("Use Action and Observation."), user("Capital of Peru?")]
    message = chat(messages, stop=["Observation:"])
    action = re.search(r"Action Input: (.*)", message["content"])[1]
    messages += [message, user(f"Observation: Lima is the capital ({action})")]
    print(chat(messages, stop=["Observation:"])["content"])


@app(
    [
        calls(
            call("search", {"query": "ferry to gozo"}), call("search", {"query": "bus to cirkewwa"})
        ),
        say("Bus 41, then the ferry."),
    ]
)
def results_as_user_messages():
    """The template of the local model has no tool role: calls become text, results the user's."""
    tools = [tool("search", SEARCH)]
    messages = [user("How do I get to Gozo?")]
    message = chat(messages, tools, model="phi-4")
    told = "\n".join(json.dumps(one["function"]) for one in message["tool_calls"])
    messages += [
        {"role": "assistant", "content": f"<tool_call>\n{told}\n</tool_call>"},
        user("<tool_response>\nferry every 45 min; bus 41\n</tool_response>"),
    ]
    print(chat(messages, tools, model="phi-4")["content"])


@app(
    [
        say('<tool_call>\n{"name": "search", "arguments": {"query": "etna"}}\n</tool_call>'),
        say("Etna is quiet."),
    ]
)
def text_calls_made_structured():
    """The model writes its call as text; the app parses it and keeps it as a call with an id of
    its own."""
    tools = [tool("search", SEARCH)]
    messages = [user("Is Etna active?")]
    message = chat(messages, tools, model="hermes-3-8b")
    asked = json.loads(re.search(r"<tool_call>(.*?)</tool_call>", message["content"], re.DOTALL)[1])
    function = {"name": asked["name"], "arguments": json.dumps(asked["arguments"])}
    one = {"id": "call_text_1", "type": "function", "function": function}
    messages += [{"role": "assistant", "content": None, "tool_calls": [one]}, result(one, "quiet")]
    print(chat(messages, tools, model="hermes-3-8b")["content"])


@app(
    [
        calls(call("tool_search", {"query": "calendar"})),
        calls(call("calendar_create", {"title": "Dentist", "day": "2027-01-11"})),
        say("The dentist is in your calendar."),
    ]
)
def tools_found_by_search():
    """Tools are deferred: what a search finds is offered from then on."""
    tools = [tool("tool_search", SEARCH)]
    messages = [user("Dentist on January 11th")]
    message = chat(messages, tools)
    tools.append(tool("calendar_create", {"title": "string", "day": "string"}))
    messages += [message, result(message["tool_calls"][0], ["calendar_create"])]
    message = chat(messages, tools)
    messages += [message, result(message["tool_calls"][0], "created")]
    print(chat(messages, tools)["content"])


@app(
    [
        calls(call("search", {"query": "a"})),
        calls(call("search", {"query": "b"})),
        say("I found a and b."),
    ]
)
def no_tools_in_the_last_step():
    """After two steps the tools are withdrawn, so that the model must answer."""
    messages = [user("Find a and b")]
    for _ in range(2):
        message = chat(messages, [tool("search", SEARCH)])
        messages += [message, result(message["tool_calls"][0], "found")]
    messages.append(user("You have used all steps. Answer now."))
    print(chat(messages)["content"])


@app(
    [
        calls(call("open_account", {"kind": "savings"})),
        calls(call("verify_identity", {"passport": "C01X00T47"})),
        say("Your account is open."),
    ]
)
def tools_by_state():
    """A state machine offers in each state only what is possible there: the tool that was called
    is no longer offered."""
    states = [
        [tool("open_account", {"kind": "string"})],
        [tool("verify_identity", {"passport": "string"})],
        [tool("close_account", {})],
    ]
    messages = [user("A savings account please; passport C01X00T47")]
    for state in states[:2]:
        message = chat(messages, state)
        messages += [message, result(message["tool_calls"][0], "ok")]
    print(chat(messages, states[2])["content"])


@app(
    [
        say("simple", model="gpt-4.1-nano"),
        calls(call("search", {"query": "opening hours zoo"})),
        say("The zoo opens at nine."),
    ]
)
def router_then_model():
    """A small model says how hard the question is; its answer is no part of the conversation."""
    question = user("When does the zoo open?")
    chat([system("Answer 'simple' or 'hard'."), question], model="gpt-4.1-nano", max_tokens=3)
    messages = [question]
    message = chat(messages, [tool("search", SEARCH)])
    messages += [message, result(message["tool_calls"][0], "9 to 18")]
    print(chat(messages, [tool("search", SEARCH)])["content"])


@app(
    [
        calls(call("search", {"query": "lentil soup"})),
        say("Boil the lentils for 20 minutes."),
        say("Yes, add carrots."),
    ]
)
def local_then_cloud():
    """A draft by a local model, then a hosted one: Ollama's calls get ids on the way."""
    messages = [user("Lentil soup?")]
    message = ollama(messages, [tool("search", SEARCH)])
    function = message["tool_calls"][0]["function"]
    one = {
        "id": "call_local0001",
        "type": "function",
        "function": {"name": function["name"], "arguments": json.dumps(function["arguments"])},
    }
    messages += [{"role": "assistant", "content": "", "tool_calls": [one]}, result(one, "20 min")]
    messages += [chat(messages, [tool("search", SEARCH)]), user("Carrots?")]
    print(chat(messages)["content"])


@app(
    [
        calls(call("search", {"query": "jazz tonight"})),
        fails(
            400,
            openai_error("Unsupported parameter: 'parallel_tool_calls'", "invalid_request_error"),
        ),
        say("At the Blue Note, nine o'clock."),
    ]
)
def parameter_left_out_after_400():
    """The new model refuses a parameter; the app leaves it out and asks again."""
    import httpx

    tools = [tool("search", SEARCH)]
    messages = [user("Jazz tonight?")]
    message = chat(messages, tools, parallel_tool_calls=False)
    messages += [message, result(message["tool_calls"][0], "Blue Note 21:00")]
    try:
        chat(messages, tools, parallel_tool_calls=False, model="o4-mini")
    except httpx.HTTPStatusError:
        print(chat(messages, tools, model="o4-mini")["content"])
