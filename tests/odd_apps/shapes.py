"""The shapes of messages: order and grouping of results, prefill, choices, stored responses."""

from .kit import (
    CHAT_MODEL,
    CLAUDE_MODEL,
    GEMINI_MODEL,
    OLLAMA_MODEL,
    app,
    chat,
    chat_whole,
    claude,
    claude_result,
    claude_tool,
    events,
    flat_tool,
    gemini,
    openai_url,
    respond,
    result,
    system,
    tool,
    user,
)
from .provider import call, calls, fails, openai_error, say

PRICE = {"sku": "string"}
PRICES = {"A": "1 EUR", "B": "2 EUR", "C": "3 EUR"}
ALL = tuple(call("price", {"sku": sku}) for sku in PRICES)


@app([calls(*ALL), say("1, 2 and 3 EUR.")])
def results_in_the_order_of_arrival():
    """Calls run in parallel; results stand in the order in which they came back."""
    import json

    tools = [tool("price", PRICE)]
    messages = [user("Prices of A, B, C?")]
    message = chat(messages, tools)
    messages.append(message)
    for one in reversed(message["tool_calls"]):
        messages.append(result(one, PRICES[json.loads(one["function"]["arguments"])["sku"]]))
    print(chat(messages, tools)["content"])


@app([calls(*ALL, text="Three lookups."), say("1, 2 and 3 EUR.")])
def results_in_one_message():
    """Anthropic: all results in one message of the user, with words after them."""
    tools = [claude_tool("price", PRICE)]
    messages = [user("Prices of A, B, C?")]
    message = claude(messages, tools)
    results = [
        claude_result(block, PRICES[block["input"]["sku"]])
        for block in message["content"]
        if block["type"] == "tool_use"
    ]
    messages += [message, user([*results, {"type": "text", "text": "(prices without VAT)"}])]
    print(claude(messages, tools)["content"])


@app([calls(*ALL), say("1, 2 and 3 EUR.")])
def results_in_several_messages():
    """Each result is a message of the user; the API joins them."""
    tools = [claude_tool("price", PRICE)]
    messages = [user("Prices of A, B, C?")]
    message = claude(messages, tools)
    messages.append(message)
    messages += [
        user([claude_result(one, PRICES[one["input"]["sku"]])]) for one in message["content"]
    ]
    print(claude(messages, tools)["content"])


@app([calls(*ALL[:2]), say("A is 1 EUR; B is still being looked up."), say("B is 2 EUR.")])
def second_result_later():
    """The slow result is told as pending first, and put in its place when it is there."""
    tools = [tool("price", PRICE)]
    messages = [user("A and B?")]
    message = chat(messages, tools)
    pending = result(message["tool_calls"][1], "pending")
    messages += [message, result(message["tool_calls"][0], "1 EUR"), pending]
    chat(messages, tools)
    pending["content"] = "2 EUR"
    print(chat(messages, tools)["content"])


@app([calls(ALL[0], ALL[1]), say("A and B together are 3 EUR.")])
def assistant_message_split_per_call():
    """Each call in a message of its own, followed by its result: some models understand only
    that."""
    tools = [tool("price", PRICE)]
    messages = [user("A and B?")]
    message = chat(messages, tools)
    for one, price in zip(message["tool_calls"], ("1 EUR", "2 EUR"), strict=True):
        messages += [{"role": "assistant", "content": "", "tool_calls": [one]}, result(one, price)]
    print(chat(messages, tools)["content"])


@app(
    [
        calls(call("shot", {"region": "all"}), text="I take a picture."),
        say("I see a button."),
    ]
)
def image_result_as_user_message():
    """Chat completions take no images in results: the picture comes as a message of the user."""
    tools = [tool("shot", {"region": "string"})]
    messages = [user("What do you see?")]
    message = chat(messages, tools)
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/shot.png"}}
    messages += [
        message,
        result(message["tool_calls"][0], "The picture follows."),
        user([{"type": "text", "text": "[picture of the tool]"}, picture]),
    ]
    print(chat(messages, tools)["content"])


@app([say(' "name": "Ada", "age": 36}'), say("Ada is a name.")])
def prefilled_answer():
    """Anthropic: the app writes the first "{" of the answer, and keeps the whole."""
    messages = [user("Ada is 36. JSON please."), {"role": "assistant", "content": "{"}]
    answer = claude(messages)["content"][0]["text"]
    messages[1] = {"role": "assistant", "content": "{" + answer}
    messages.append(user("What is Ada?"))
    print(claude(messages)["content"])


@app([say("Roses", others=("Tulips", "Lilies")), say("Tulips it is.")])
def several_choices():
    """n=3: the user picks the second one, and that goes into the history."""
    body = {
        "model": CHAT_MODEL,
        "messages": [user("A flower?")],
        "n": 3,
        "stream": True,
    }
    texts = {}
    for event in events(openai_url() + "/chat/completions", body):
        for choice in event["choices"]:
            text = choice["delta"].get("content") or ""
            texts[choice["index"]] = texts.get(choice["index"], "") + text
    messages = [*body["messages"], {"role": "assistant", "content": texts[1]}, user("That one.")]
    print(chat(messages)["content"])


@app(
    [
        calls(call("price", {"sku": "A"}), reasoning="A price, so the tool."),
        say("A costs 1 EUR."),
        say("You asked about A."),
    ]
)
def stored_responses():
    """The provider keeps the conversation: only what is new is sent, with the previous id."""
    tools = [flat_tool("price", PRICE)]
    first = respond([user("A?")], tools)
    item = next(one for one in first["output"] if one["type"] == "function_call")
    done = {"type": "function_call_output", "call_id": item["call_id"], "output": "1 EUR"}
    second = respond([done], tools, previous_response_id=first["id"])
    third = respond([user("What did I ask?")], tools, previous_response_id=second["id"])
    print(third["output"][0]["content"][0]["text"])


@app(
    [
        calls(call("price", {"sku": "B"}), reasoning="B, the tool."),
        say("B costs 2 EUR."),
    ]
)
def item_references():
    """Items of a stored response are named by their ids instead of being repeated."""
    tools = [flat_tool("price", PRICE)]
    asked = [user("B?")]
    first = respond(asked, tools)
    references = [{"type": "item_reference", "id": item["id"]} for item in first["output"]]
    call_id = first["output"][-1]["call_id"]
    done = {"type": "function_call_output", "call_id": call_id, "output": "2 EUR"}
    print(respond([*asked, *references, done], tools)["output"][0]["content"])


@app(
    [
        calls(call("price", {"sku": "C"})),
        say("C costs 3 EUR."),
    ]
)
def conversation_object():
    """A stored conversation: the second request brings the output and nothing else."""
    tools = [flat_tool("price", PRICE)]
    first = respond([user("C?")], tools, conversation="conv_689667905b048191b4740501625afd94")
    call_id = first["output"][0]["call_id"]
    done = {"type": "function_call_output", "call_id": call_id, "output": "3 EUR"}
    print(respond([done], tools, conversation="conv_689667905b048191b4740501625afd94")["status"])


SEARCHED = (
    {
        "type": "server_tool_use",
        "id": "srvtoolu_01A",
        "name": "web_search",
        "input": {"query": "eclipse"},
    },
    {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_01A",
        "content": [
            {
                "type": "web_search_result",
                "url": "https://example.com/eclipse",
                "title": "Eclipse",
                "encrypted_content": "EqgfCioIARgBIiQ3",
                "page_age": None,
            }
        ],
    },
)


@app([say("It is on August 12th.", blocks=SEARCHED), say("In Spain, for instance.")])
def search_of_the_provider():
    """Anthropic searches itself; the app keeps the text alone, and not the search."""
    tools = [{"type": "web_search_20250305", "name": "web_search", "max_uses": 2}]
    messages = [user("When is the next eclipse?")]
    message = claude(messages, tools)
    texts = [block for block in message["content"] if block["type"] == "text"]
    messages += [{"role": "assistant", "content": texts}, user("Where?")]
    print(claude(messages, tools)["content"])


@app(
    [
        say("", blocks=SEARCHED, finish="pause_turn"),
        say("It is on August 12th, in Spain."),
    ]
)
def paused_turn_continued():
    """pause_turn: the assistant's message is sent back as it is, and the model goes on."""
    tools = [{"type": "web_search_20250305", "name": "web_search"}]
    messages = [user("When and where is the next eclipse?")]
    messages.append(claude(messages, tools))
    print(claude(messages, tools)["content"])


@app([calls(call("price", {"sku": "A"})), say("1 EUR, says the till.")])
def developer_role_and_names():
    """A developer message that moves to the end, an assistant's name, empty strings for null."""
    tools = [tool("price", PRICE)]
    messages = [{"role": "developer", "content": "Short."}, user("A?")]
    message = chat(messages, tools)
    message = {**message, "content": "", "name": "till", "refusal": None, "audio": None}
    messages = [
        messages[1],
        message,
        result(message["tool_calls"][0], "1 EUR"),
        {"role": "developer", "content": "Short, and say who told you."},
    ]
    print(chat(messages, tools)["content"])


@app(
    [
        calls(call("price", {"sku": "B"}), signature="CiQB4/H/XmAiD0pT+signature+of+a+thought"),
        say("2 EUR."),
    ]
)
def gemini_by_its_sdk():
    """google-genai keeps the contents itself, in a chat."""
    import os

    from google import genai
    from google.genai import types

    ask = genai.Client(
        api_key="none",
        http_options=types.HttpOptions(base_url=os.environ["GOOGLE_GEMINI_BASE_URL"]),
    )
    declared = types.FunctionDeclaration(
        name="price",
        description="Price.",
        parameters={
            "type": "OBJECT",
            "properties": {"sku": {"type": "STRING"}},
            "required": ["sku"],
        },
    )
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declared])])
    session = ask.chats.create(model=GEMINI_MODEL, config=config)
    for _ in session.send_message_stream("B?"):
        pass
    part = types.Part.from_function_response(name="price", response={"price": "2 EUR"})
    print("".join(one.text for one in session.send_message_stream(part)))


@app([calls(call("price", {"sku": "C"})), say("3 EUR.")])
def ollama_by_its_sdk():
    """The ollama package, with a Python function as the tool."""
    import ollama

    def price(sku: str) -> str:
        """Give the price.

        Args:
            sku: the article
        """
        return PRICES[sku]

    messages = [user("C?")]
    message = None
    for part in ollama.Client().chat(OLLAMA_MODEL, messages, tools=[price], stream=True):
        if part.message.tool_calls:
            message = part.message
    messages.append(message)
    one = message.tool_calls[0].function
    messages.append({"role": "tool", "tool_name": one.name, "content": price(**one.arguments)})
    answer = ollama.Client().chat(OLLAMA_MODEL, messages, tools=[price], stream=False)
    print(answer.message.content)


@app([calls(call("price", {"sku": "A"}), text="One moment."), say("1 EUR.")])
def anthropic_tool_runner():
    """Anthropic's SDK runs the tools by itself."""
    import anthropic

    @anthropic.beta_tool
    def price(sku: str) -> str:
        """Give the price."""
        return PRICES[sku]

    ask = anthropic.Anthropic(api_key="none")
    runner = ask.beta.messages.tool_runner(
        model=CLAUDE_MODEL, max_tokens=200, tools=[price], messages=[user("A?")]
    )
    for message in runner:
        print(message.content[0].text)


@app(
    [
        calls(call("price", {"sku": "A"}), call("price", {"sku": "B"})),
        say("1 and 2."),
    ]
)
def langchain_agent():
    """LangChain's own messages and chunks, added up."""
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model=CHAT_MODEL, api_key="sk-none").bind_tools([tool("price", PRICE)])
    messages = [HumanMessage("A and B?")]
    whole = None
    for chunk in model.stream(messages):
        whole = chunk if whole is None else whole + chunk
    messages.append(whole)
    for one in whole.tool_calls:
        messages.append(ToolMessage(PRICES[one["args"]["sku"]], tool_call_id=one["id"]))
    print(model.invoke(messages).content)


@app([calls(call("price", {"sku": "B"})), say("2 EUR."), say("fine")])
def litellm_to_anthropic():
    """LiteLLM speaks OpenAI's dialect to the app and Anthropic's to the provider."""
    import os

    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    base = os.environ["ANTHROPIC_BASE_URL"]
    more = {
        "model": f"anthropic/{CLAUDE_MODEL}",
        "api_key": "none",
        "api_base": base,
        "tools": [tool("price", PRICE)],
    }
    messages = [user("B?")]
    message = litellm.completion(messages=messages, **more).choices[0].message
    messages.append(message.model_dump())
    messages += [
        {"role": "tool", "tool_call_id": one.id, "content": "2 EUR"} for one in message.tool_calls
    ]
    stream = litellm.completion(messages=messages, stream=True, **more)
    print("".join(part.choices[0].delta.content or "" for part in stream))


@app(
    [
        say("I see. Anything else?"),
        fails(400, openai_error("Input should be a valid string", "invalid_request_error")),
        say("Good."),
    ]
)
def retried_in_another_shape():
    """An older server takes content as text only: after a 400 the app flattens its messages."""
    import httpx

    messages = [system("Short."), user("one")]
    answer = chat(messages)
    messages += [answer, user([{"type": "text", "text": "two"}])]
    try:
        chat(messages)
    except httpx.HTTPStatusError:
        messages[-1] = user("two")
        print(chat_whole(messages)["content"])


def legacy(asked):
    """A call in the shape before tools."""
    if asked.number:
        return say("12 degrees.")
    function_call = {"name": "weather", "arguments": '{"city": "Metz"}'}
    message = {"role": "assistant", "content": None, "function_call": function_call}
    choice = {"index": 0, "message": message, "finish_reason": "function_call"}
    return fails(
        200,
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": CHAT_MODEL,
            "choices": [choice],
        },
    )


@app(legacy)
def functions_before_tools():
    """The old API: functions and function_call."""
    functions = [tool("weather", {"city": "string"})["function"]]
    messages = [user("Metz?")]
    message = chat_whole(messages, functions=functions)
    messages += [message, {"role": "function", "name": "weather", "content": "12"}]
    print(chat_whole(messages, functions=functions)["content"])


@app([say("Hallo!"), say("Gut.")])
def gemini_with_one_growing_prompt():
    """The whole conversation is one text in one part, as with a base model."""
    transcript = "User: Hallo\nBot:"
    first = gemini([{"role": "user", "parts": [{"text": transcript}]}])["parts"][0]["text"]
    transcript += f" {first}\nUser: Wie geht es?\nBot:"
    print(gemini([{"role": "user", "parts": [{"text": transcript}]}]))
