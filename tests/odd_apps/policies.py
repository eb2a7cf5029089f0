"""Apps that have a policy about calls: which run, and in what shape they are kept."""

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
    ollama,
    respond,
    result,
    schema,
    system,
    tool,
    user,
)
from .provider import call, calls, say


def rewritten(one, value):
    """The call with other arguments."""
    one["function"]["arguments"] = json.dumps(value)
    return one


@app(
    [
        calls(call("search", {"query": "rust async"}), call("search", {"query": "rust tokio"})),
        calls(call("search", {"query": "rust tokio"})),
        say("Tokio is the most used runtime."),
    ]
)
def one_call_per_turn():
    """One call at a time: the others are cut off and the model may ask again."""
    tools = [tool("search", {"query": "string"})]
    messages = [system("One step at a time."), user("Which async runtime should I use in Rust?")]
    while (message := chat(messages, tools)).get("tool_calls"):
        message["tool_calls"] = message["tool_calls"][:1]
        messages.append(message)
        query = arguments(message["tool_calls"][0])["query"]
        messages.append(result(message["tool_calls"][0], f"3 results for {query}"))
    print(message["content"])


@app(
    [
        calls(
            call("stock", {"symbol": "ACME"}),
            call("stock", {"symbol": "ACME"}),
            call("stock", {"symbol": "INIT"}),
        ),
        say("ACME is at 12.5 and INIT at 80."),
    ]
)
def equal_calls_merged():
    """Equal calls are made once, and kept once."""
    tools = [tool("stock", {"symbol": "string"})]
    messages = [user("How are ACME and INIT?")]
    message = chat(messages, tools)
    seen = {}
    for one in message["tool_calls"]:
        seen.setdefault((one["function"]["name"], one["function"]["arguments"]), one)
    message["tool_calls"] = list(seen.values())
    messages.append(message)
    prices = {"ACME": 12.5, "INIT": 80}
    messages += [result(one, prices[arguments(one)["symbol"]]) for one in message["tool_calls"]]
    print(chat(messages, tools)["content"])


@app(
    [
        calls(call("forecast", {"city": "Oslo", "days": "3", "hourly": "false"})),
        say("Three cold days in Oslo."),
    ]
)
def coerces_by_schema():
    """The arguments go through a typed model ("3" is 3) and history has what it made of them."""
    import pydantic

    class Forecast(pydantic.BaseModel):
        city: str
        days: int
        hourly: bool = False

    made = tool("forecast")
    made["function"]["parameters"] = Forecast.model_json_schema()
    messages = [user("Oslo, next three days?")]
    message = chat(messages, [made])
    one = message["tool_calls"][0]
    asked = Forecast.model_validate_json(one["function"]["arguments"])
    one["function"]["arguments"] = asked.model_dump_json()
    messages += [message, result(one, "-3, -5, -4")]
    print(chat(messages, [made])["content"])


@app([calls(call("list_issues", {"repo": "acme/shop"})), say("There are two open issues.")])
def fills_in_defaults():
    """The arguments are completed by the defaults of the schema."""
    properties = {
        "repo": "string",
        "state": {"type": "string", "enum": ["open", "closed"], "default": "open"},
        "per_page": {"type": "integer", "default": 30},
        "labels": {"type": "array", "items": {"type": "string"}, "default": []},
    }
    tools = [tool("list_issues", properties, ["repo"])]
    messages = [user("What is open in acme/shop?")]
    message = chat(messages, tools)
    one = message["tool_calls"][0]
    defaults = {
        name: told["default"]
        for name, told in properties.items()
        if isinstance(told, dict) and "default" in told
    }
    rewritten(one, {**defaults, **arguments(one)})
    messages += [message, result(one, ["#12 cart is empty", "#15 typo"])]
    print(chat(messages, tools)["content"])


@app(
    [
        calls(
            call(
                "create_ticket",
                {
                    "title": "Login fails",
                    "priority": "high",
                    "reasoning": "user said urgent",
                    "_v": 1,
                },
            )
        ),
        say("Ticket 77 is open."),
    ]
)
def strips_unknown_fields():
    """Fields that the schema does not know are removed (additionalProperties is false)."""
    properties = {"title": "string", "priority": "string"}
    made = claude_tool("create_ticket", properties)
    made["input_schema"]["additionalProperties"] = False
    messages = [user("Login fails, urgent!")]
    message = claude(messages, [made])
    block = message["content"][0]
    block["input"] = {name: value for name, value in block["input"].items() if name in properties}
    messages += [message, user([claude_result(block, "77")])]
    print(claude(messages, [made])["content"])


@app(
    [
        calls(call("find_user", {"name": "Kim", "email": None, "phone": None, "limit": 5})),
        say("There is one Kim."),
    ]
)
def removes_nulls():
    """Optional values that are null are removed before the call is made and kept."""
    properties = {
        "name": "string",
        "email": {"type": ["string", "null"]},
        "phone": {"type": ["string", "null"]},
        "limit": "integer",
    }
    tools = [tool("find_user", properties)]
    messages = [user("Who is Kim?")]
    message = chat(messages, tools)
    one = message["tool_calls"][0]
    rewritten(one, {name: v for name, v in arguments(one).items() if v is not None})
    messages += [message, result(one, "Kim Lee, Seoul")]
    print(chat(messages, tools)["content"])


@app(
    [
        calls(call("book_table", {"day": "May 4th 2027", "time": "7pm", "guests": 2})),
        say("A table for two on 2027-05-04 at 19:00."),
    ]
)
def normalises_dates():
    """Dates and times are turned into ISO form in place, as the booking system wants them."""
    tools = [tool("book_table", {"day": "string", "time": "string", "guests": "integer"})]
    messages = [user("A table for two on May 4th at seven")]
    message = chat(messages, tools)
    one = message["tool_calls"][0]
    rewritten(one, {**arguments(one), "day": "2027-05-04", "time": "19:00"})
    messages += [message, result(one, "booked")]
    print(chat(messages, tools)["content"])


@app(
    [
        calls(call("find_contact", {"name": "  Jürgen Groß ", "city": "Köln\n", "age": 44})),
        say("Jürgen Groß of Köln has number 0221 123."),
    ]
)
def trims_and_sorts():
    """Strings are trimmed and keys sorted, for a stable cache key."""
    tools = [tool("find_contact", {"name": "string", "city": "string", "age": "integer"})]
    messages = [user("Number of Jürgen Groß, 44, in Köln?")]
    message = chat(messages, tools)
    one = message["tool_calls"][0]
    clean = {n: v.strip() if isinstance(v, str) else v for n, v in arguments(one).items()}
    one["function"]["arguments"] = json.dumps(clean, sort_keys=True, ensure_ascii=True)
    messages += [message, result(one, "0221 123")]
    print(chat(messages, tools)["content"])


@app(
    [
        calls(call("set_light", {"room": "Kitchen", "state": "ON"})),
        say("The kitchen is lit."),
    ]
)
def enum_in_its_own_case():
    """Values of an enumeration are put into the case of the schema."""
    states = ["on", "off"]
    properties = {
        "room": {"enum": ["kitchen", "bath"]},
        "state": {"type": "string", "enum": states},
    }
    tools = [tool("set_light", properties)]
    messages = [user("Light in the kitchen!")]
    message = chat(messages, tools)
    one = message["tool_calls"][0]
    rewritten(one, {name: value.lower() for name, value in arguments(one).items()})
    messages += [message, result(one, "ok")]
    print(chat(messages, tools)["content"])


@app(
    [
        calls(call("bash", {"command": "git status --short"})),
        say("One file is changed: README.md."),
    ]
)
def tool_name_repaired():
    """The model says bash where the tool is Bash; the app repairs the name and keeps it so."""
    tools = [claude_tool("Bash", {"command": "string"})]
    messages = [user("What is changed?")]
    message = claude(messages, tools)
    block = message["content"][0]
    names = {one["name"].lower(): one["name"] for one in tools}
    block["name"] = names[block["name"].lower()]
    messages += [message, user([claude_result(block, " M README.md")])]
    print(claude(messages, tools)["content"])


@app(
    [
        calls(call("get_wether", {"city": "Bergen"})),
        say("It rains in Bergen."),
    ]
)
def misspelt_name_repaired():
    """A small model misspells the tool; the app takes the nearest name."""
    import difflib

    tools = [tool("get_weather", {"city": "string"}), tool("get_time", {"city": "string"})]
    names = [one["function"]["name"] for one in tools]
    messages = [user("Bergen today?")]
    message = chat(messages, tools)
    one = message["tool_calls"][0]
    one["function"]["name"] = difflib.get_close_matches(one["function"]["name"], names)[0]
    messages += [message, result(one, "rain")]
    print(chat(messages, tools)["content"])


@app(
    [
        calls(*(call("fetch_page", {"url": f"https://example.com/{n}"}) for n in range(4))),
        say("I read two of the four pages."),
    ]
)
def budget_of_calls():
    """Two calls per turn are paid for; the others get a result that says so."""
    tools = [tool("fetch_page", {"url": "string"})]
    messages = [user("Read all pages")]
    message = chat(messages, tools)
    messages.append(message)
    for number, one in enumerate(message["tool_calls"]):
        told = "<html>page</html>" if number < 2 else "skipped: budget of this turn is used up"
        messages.append(result(one, told))
    print(chat(messages, tools)["content"])


@app(
    [
        calls(call("login", {"user": "svc-deploy", "password": "hunter2-and-more", "host": "db1"})),
        say("Logged in."),
    ]
)
def secrets_masked_in_history():
    """What looks like a password is masked before the call goes into the database."""
    tools = [tool("login", {"user": "string", "password": "string", "host": "string"})]
    messages = [user("Log in to db1 as svc-deploy with hunter2-and-more")]
    message = chat(messages, tools)
    one = message["tool_calls"][0]
    rewritten(one, {**arguments(one), "password": "***"})
    messages += [message, result(one, "session opened")]
    messages[0] = user("Log in to db1 as svc-deploy with ***")
    print(chat(messages, tools)["content"])


@app(
    [
        calls(
            call("read_file", {"path": "./src/main.py"}), call("read_file", {"path": "src/util.py"})
        ),
        say("main.py calls util.py."),
    ]
)
def paths_made_absolute():
    """Paths are resolved in the workspace; the model sees the real ones from then on."""
    import posixpath

    tools = [claude_tool("read_file", {"path": "string"})]
    messages = [user("What does main do?")]
    message = claude(messages, tools)
    for block in message["content"]:
        block["input"]["path"] = posixpath.normpath(f"/workspace/shop/{block['input']['path']}")
    messages += [message, user([claude_result(b, "import util") for b in message["content"]])]
    print(claude(messages, tools)["content"])


@app(
    [
        calls(
            call(
                "create_order", {"customer_id": 7, "line_items": [{"item_id": 3, "unit_count": 2}]}
            )
        ),
        say("Order 99 is placed."),
    ]
)
def camel_case_keys():
    """The API behind the tool wants camelCase; the app renames the keys where it keeps the call."""

    def camel(value):
        if isinstance(value, list):
            return [camel(one) for one in value]
        if not isinstance(value, dict):
            return value
        return {
            name.split("_")[0] + "".join(word.title() for word in name.split("_")[1:]): camel(one)
            for name, one in value.items()
        }

    line = schema({"item_id": "integer", "unit_count": "integer"})
    tools = [
        tool(
            "create_order",
            {"customer_id": "integer", "line_items": {"type": "array", "items": line}},
        )
    ]
    messages = [user("Two of item 3 for customer 7")]
    message = chat(messages, tools)
    one = message["tool_calls"][0]
    rewritten(one, camel(arguments(one)))
    messages += [message, result(one, {"orderId": 99})]
    print(chat(messages, tools)["content"])


@app(
    [
        calls(call("get_post", '{"post_id": 9007199254740993, "fields": ["text"]}')),
        say("The post says hello."),
    ]
)
def big_integers_as_strings():
    """Ids beyond 2^53 are kept as strings, since a browser reads the history."""
    tools = [tool("get_post", {"post_id": "integer", "fields": {"type": "array"}})]
    messages = [user("Read post 9007199254740993")]
    message = chat(messages, tools)
    one = message["tool_calls"][0]
    safe = {n: str(v) if isinstance(v, int) and v > 2**53 else v for n, v in arguments(one).items()}
    messages += [{**message, "tool_calls": [rewritten(one, safe)]}, result(one, "hello")]
    print(chat(messages, tools)["content"])


@app(
    [
        calls(call("move", '{"x": 1.0, "y": 2e3, "speed": 0.10}')),
        say("The robot moved."),
    ]
)
def numbers_of_another_json():
    """The history goes through a store that writes numbers its own way: 1.0 is 1, 2e3 is 2000."""

    def plain(value):
        return int(value) if isinstance(value, float) and value.is_integer() else value

    tools = [tool("move", {"x": "number", "y": "number", "speed": "number"})]
    messages = [user("Go to 1, 2000")]
    message = chat(messages, tools)
    one = message["tool_calls"][0]
    rewritten(one, {name: plain(value) for name, value in arguments(one).items()})
    messages += [message, result(one, "arrived")]
    print(chat(messages, tools)["content"])


@app(
    [
        calls(call("translate", {"text": "naïve café – 東京 🚀", "to": "de"})),
        say("naives Café – Tokio 🚀"),
    ]
)
def escapes_of_another_json():
    """The arguments are written again with \\u escapes and other blanks: the same value."""
    tools = [tool("translate", {"text": "string", "to": "string"})]
    messages = [user("naïve café – 東京 🚀 auf Deutsch")]
    message = chat(messages, tools)
    one = message["tool_calls"][0]
    one["function"]["arguments"] = json.dumps(arguments(one), indent=2, ensure_ascii=True)
    messages += [message, result(one, "naives Café – Tokio 🚀")]
    print(chat(messages, tools)["content"])


@app([calls(call("get_time", "")), say("It is noon."), calls(call("get_time", "{}")), say("One.")])
def empty_arguments_both_ways():
    """A tool without parameters: "" becomes {} in the history, and {} becomes "" never matters."""
    tools = [tool("get_time", {}, [])]
    messages = [user("What time is it?")]
    for told in ("12:00", "13:00"):
        message = chat(messages, tools)
        one = message["tool_calls"][0]
        one["function"]["arguments"] = one["function"]["arguments"] or "{}"
        messages += [message, result(one, told)]
        messages += [chat(messages, tools), user("And now?")]


@app(
    [
        calls(
            call("write_html", {"html": "&lt;p&gt;Tom &amp;amp; Ann&lt;/p&gt;", "path": "a.html"})
        ),
        say("The page is written."),
    ]
)
def entities_unescaped():
    """This model escapes HTML in arguments; the app unescapes it, as is known of the model."""
    import html

    tools = [tool("write_html", {"html": "string", "path": "string"})]
    messages = [user("Write a page about Tom & Ann")]
    message = chat(messages, tools)
    one = message["tool_calls"][0]
    asked = arguments(one)
    rewritten(one, {**asked, "html": html.unescape(asked["html"])})
    messages += [message, result(one, "ok")]
    print(chat(messages, tools)["content"])


@app(
    [
        calls(call("run_sql", {"query": "```sql\nSELECT count(*) FROM orders;\n```"})),
        say("There are 1204 orders."),
    ]
)
def code_fence_removed():
    """The model wraps SQL in a code fence; the app takes it off before it runs and keeps it."""
    tools = [flat_tool("run_sql", {"query": "string"})]
    asked = [user("How many orders?")]
    first = respond(asked, tools)
    item = first["output"][0]
    query = json.loads(item["arguments"])["query"].strip("`").removeprefix("sql").strip()
    item["arguments"] = json.dumps({"query": query})
    done = {"type": "function_call_output", "call_id": item["call_id"], "output": "1204"}
    print(respond([*asked, item, done], tools)["output"][0]["content"][0]["text"])


@app(
    [
        calls(call("add_todo", '{"title": "Buy milk", "due": "tomorrow",}')),
        say("Milk is on the list."),
    ]
)
def trailing_comma_repaired():
    """The model leaves a trailing comma; the app repairs the JSON and goes on."""
    import re

    tools = [tool("add_todo", {"title": "string", "due": "string"})]
    messages = [user("Remind me of milk")]
    message = chat(messages, tools)
    one = message["tool_calls"][0]
    one["function"]["arguments"] = re.sub(r",\s*}", "}", one["function"]["arguments"])
    messages += [message, result(one, "added")]
    print(chat(messages, tools)["content"])


@app(
    [
        calls(call("search_docs", {"query": "rate limits"})),
        calls(call("search_docs", {"query": "rate limits"})),
        calls(call("search_docs", {"query": "rate limits"})),
        say("I could not find more about rate limits."),
    ]
)
def loop_broken_by_the_app():
    """The third equal call in a row is not made: the app drops it and tells the model in words."""
    tools = [tool("search_docs", {"query": "string"})]
    messages = [user("What are the rate limits?")]
    for _ in range(2):
        message = chat(messages, tools)
        messages += [message, result(message["tool_calls"][0], "nothing found")]
    chat(messages, tools)
    messages.append(user("You have asked that twice already. Answer with what you know."))
    print(chat_whole(messages)["content"])


@app(
    [
        calls(call("compile", {"flags": "-Wall"})),
        calls(call("compile", {"flags": "-Wall -O2"})),
        calls(call("compile", {"flags": "-O2"})),
        say("It compiles with -O2."),
    ]
)
def failed_attempts_forgotten():
    """Once a call succeeds, the failed ones before it are taken out to save tokens."""
    tools = [tool("compile", {"flags": "string"})]
    question = [user("Make it compile")]
    messages = list(question)
    for outcome in ("error: unused variable", "error: unused variable", "ok"):
        message = chat(messages, tools)
        pair = [message, result(message["tool_calls"][0], outcome)]
        messages = [*question, *pair] if outcome == "ok" else [*messages, *pair]
    print(chat(messages, tools)["content"])


@app(
    [
        calls(call("get_price", {"sku": "A-1"}), call("get_price", {"sku": "B-2"})),
        say("A-1 costs 3 and B-2 costs 4."),
    ]
)
def local_model_without_ids():
    """Ollama knows no ids; results follow in the order of the calls, with the tool's name."""
    tools = [tool("get_price", {"sku": "string"})]
    messages = [user("Prices of A-1 and B-2?")]
    message = ollama(messages, tools)
    messages.append(message)
    for one, price in zip(message["tool_calls"], ("3", "4"), strict=True):
        messages.append({"role": "tool", "tool_name": one["function"]["name"], "content": price})
    print(ollama(messages, tools)["content"])


@app(
    [
        calls(
            call("scale", {"service": "web", "replicas": 500}),
            text="Scaling web up to 500 replicas.",
        ),
        say("web runs with 20 replicas, the most that is allowed."),
    ]
)
def arguments_clamped():
    """Numbers are clamped to what the policy allows; the result tells what was done."""
    tools = [tool("scale", {"service": "string", "replicas": {"type": "integer", "maximum": 20}})]
    messages = [user("Black Friday! Scale web to the maximum")]
    message = chat(messages, tools)
    one = message["tool_calls"][0]
    asked = arguments(one)
    rewritten(one, {**asked, "replicas": min(asked["replicas"], 20)})
    messages += [message, result(one, {"replicas": 20})]
    print(chat(messages, tools)["content"])
