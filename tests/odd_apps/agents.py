"""Agents: handoffs, sub-agents, memory, output tools, extraction, judges."""

import json
import threading

from .kit import (
    CHAT_MODEL,
    app,
    arguments,
    chat,
    chat_whole,
    claude,
    claude_result,
    claude_tool,
    flat_tool,
    openai_url,
    respond,
    result,
    schema,
    system,
    tool,
    user,
)
from .provider import call, calls, say


@app(
    [
        calls(call("transfer_to_billing", {})),
        calls(call("refund", {"order": "A17"})),
        say("Your refund is on its way."),
    ]
)
def handoff_with_history():
    """A handoff: the next agent has the whole history, other tools and another system prompt."""
    said = [user("I want my money back for A17")]
    triage = [tool("transfer_to_billing", {}), tool("transfer_to_sales", {})]
    message = chat([system("You are triage."), *said], triage)
    said += [message, result(message["tool_calls"][0], {"assistant": "billing"})]
    billing = [tool("refund", {"order": "string"})]
    message = chat([system("You are billing."), *said], billing)
    said += [message, result(message["tool_calls"][0], "done")]
    print(chat([system("You are billing."), *said], billing)["content"])


@app(
    [
        calls(call("lookup_order", {"order": "A17"})),
        calls(call("transfer_to_billing", {})),
        say("I see that you want a refund. Which order is it?"),
    ]
)
def handoff_without_calls():
    """A handoff whose filter removes all calls and results: the next agent sees words only."""
    said = [user("I want my money back")]
    tools = [tool("transfer_to_billing", {}), tool("lookup_order", {"order": "string"})]
    message = chat([system("You are triage."), *said], tools)
    said += [message, result(message["tool_calls"][0], "not found")]
    chat([system("You are triage."), *said], tools)
    filtered = [one for one in said if one["role"] == "user"]
    print(
        chat([system("You are billing."), *filtered], [tool("refund", {"order": "string"})])[
            "content"
        ]
    )


@app(
    [
        calls(
            call("ask_researcher", {"question": "population of Malta"}),
            call("ask_researcher", {"question": "area of Malta"}),
        ),
        calls(call("search", {"query": "population of Malta"})),
        say("563,000."),
        calls(call("search", {"query": "area of Malta"})),
        say("316 km2."),
        say("About 1780 people per km2."),
    ]
)
def supervisor_and_sub_agents():
    """Calls of a supervisor are answered by agents with conversations of their own."""
    tools = [claude_tool("ask_researcher", {"question": "string"})]
    messages = [user("How densely is Malta populated?")]
    message = claude(messages, tools, system="You are a supervisor.")
    results = []
    for use in message["content"]:
        inner = [user(use["input"]["question"])]
        found = claude(inner, [claude_tool("search", {"query": "string"})], system="You research.")
        inner += [found, user([claude_result(found["content"][0], "a web page")])]
        said = claude(inner, [claude_tool("search", {"query": "string"})], system="You research.")
        results.append(claude_result(use, said["content"][0]["text"]))
    messages += [message, user(results)]
    print(claude(messages, tools, system="You are a supervisor.")["content"])


@app(
    [
        say("I would use Postgres."),
        say("I disagree: SQLite is enough for one machine."),
        say("Agreed, if there is a backup."),
        say("Decision: SQLite with a nightly backup."),
    ]
)
def agents_that_share_one_history():
    """A round table: each agent's words are named messages for the others."""
    said = [user("Which database for a shop on one machine?")]
    for name in ("architect", "skeptic", "architect", "moderator"):
        seen = [
            {"role": "assistant", "content": text} if who == name else {**user(text), "name": who}
            for who, text in [(m.get("name", "user"), m["content"]) for m in said]
        ]
        answer = chat([system(f"You are the {name}."), *seen])
        said.append({"role": "user", "name": name, "content": answer["content"]})
    print(said[-1]["content"])


@app(
    [
        say("White: e4."),
        say("Black: e5."),
        say("White: Nf3."),
        say("Black: Nc6."),
    ]
)
def two_models_talk_to_each_other():
    """Each model's words are the user's words of the other."""
    white, black = [user("You play white. Begin.")], []
    for _ in range(2):
        move = chat(white)["content"]
        white.append({"role": "assistant", "content": move})
        black.append(user(move))
        reply = chat(black, model="gpt-4.1")["content"]
        black.append({"role": "assistant", "content": reply})
        white.append(user(reply))


@app(
    [
        calls(call("memory", {"command": "view", "path": "/memories"})),
        calls(
            call(
                "memory",
                {"command": "create", "path": "/memories/tea.md", "file_text": "likes tea"},
            ),
            text="I'll remember that.",
        ),
        say("Noted: tea."),
    ]
)
def memory_tool():
    """Anthropic's memory tool; what is old is cleared from the context by the app."""
    tools = [{"type": "memory_20250818", "name": "memory"}]
    messages = [user("I like tea")]
    message = claude(messages, tools)
    messages += [
        message,
        user([claude_result(message["content"][0], "Directory: /memories (empty)")]),
    ]
    message = claude(messages, tools)
    messages[2]["content"][0]["content"] = "[cleared]"
    messages += [message, user([claude_result(message["content"][1], "File created")])]
    print(claude(messages, tools)["content"])


@app(
    [
        calls(call("search", {"query": "mayor of Turin"})),
        calls(call("final_answer", {"answer": "Stefano Lo Russo", "confidence": 0.9})),
        say("He took office in 2021."),
    ]
)
def output_tool_ends_the_run():
    """A tool final_answer ends the run: its call is never answered, and the next run of the
    conversation has its text instead."""
    tools = [
        tool("search", {"query": "string"}),
        tool("final_answer", {"answer": "string", "confidence": "number"}),
    ]
    messages = [user("Who is mayor of Turin?")]
    message = chat(messages, tools, tool_choice="required")
    messages += [message, result(message["tool_calls"][0], "Stefano Lo Russo")]
    message = chat(messages, tools, tool_choice="required")
    answer = arguments(message["tool_calls"][0])["answer"]
    messages = [messages[0], {"role": "assistant", "content": answer}, user("Since when?")]
    print(chat(messages)["content"])


PERSON = schema({"name": "string", "age": "integer"})


@app(
    [
        calls(call("Person", {"name": "Ada", "age": "thirty-six"})),
        calls(call("Person", {"name": "Ada", "age": -1})),
        calls(call("Person", {"name": "Ada", "age": 36})),
    ]
)
def forced_output_with_validation():
    """Structured output by a forced tool: what fails validation is told, and the tool stays
    forced."""
    made = tool("Person")
    made["function"]["parameters"] = PERSON
    forced = {"type": "function", "function": {"name": "Person"}}
    messages = [user("Ada is thirty-six years old")]
    for _ in range(3):
        message = chat_whole(messages, [made], tool_choice=forced)
        one = message["tool_calls"][0]
        age = arguments(one)["age"]
        if isinstance(age, int) and age > 0:
            break
        told = f"1 validation error for Person\nage\n  not a valid age: {age!r}"
        messages += [message, result(one, told)]
    print(arguments(one))


@app(
    [
        say('{"name": "Ada", "age": 36'),
        say('```json\n{"name": "Ada", "age": 36}\n```'),
    ]
)
def json_by_prompt_with_retry():
    """JSON by prompt alone: what does not parse is shown to the model with the error."""
    messages = [user("Name and age as JSON: Ada is 36.")]
    message = chat(messages)
    try:
        json.loads(message["content"])
    except ValueError as error:
        messages += [message, user(f"That is no valid JSON ({error}). Try again.")]
        print(json.loads(chat(messages)["content"].strip("`").removeprefix("json")))


@app([say("", refusal="I'm sorry, I can't help with that."), say('{"name": "Ada", "age": 36}')])
def json_refused():
    """The app wants JSON by schema and gets a refusal; it says so, and asks something else."""
    import openai

    ask = openai.OpenAI(api_key="sk-none")
    form = {
        "type": "json_schema",
        "json_schema": {
            "name": "person",
            "strict": True,
            "schema": {**PERSON, "additionalProperties": False},
        },
    }
    for question in ("Describe how to build a bomb as JSON", "Ada is 36"):
        with ask.chat.completions.stream(
            model=CHAT_MODEL, messages=[user(question)], response_format=form
        ) as stream:
            stream.until_done()
            message = stream.get_final_completion().choices[0].message
        print(message.refusal or json.loads(message.content))


@app(
    [
        calls(call("save_invoice", {"number": f"R-{n}", "total": 10.5 + n, "vat": 0.19}))
        for n in range(4)
    ]
)
def extraction_ends_with_the_call():
    """The calls are the output: each document is one request, and nothing is ever answered."""
    tools = [tool("save_invoice", {"number": "string", "total": "number", "vat": "number"})]
    for number in range(4):
        document = f"Invoice R-{number}, total {10.5 + number} EUR, VAT 19 %"
        message = chat(
            [system("Extract the invoice."), user(document)], tools, tool_choice="required"
        )
        print(arguments(message["tool_calls"][0]))


def documents(asked):
    """Labels of documents."""
    label = "spam" if "prize" in asked.text else "ham"
    return calls(call("label", {"label": label}, id="chatcmpl-tool-0"), pace=0.005)


@app(documents)
def batch_with_equal_ids():
    """A batch of documents at once, by a server whose calls all have one id."""
    tools = [tool("label", {"label": "string"})]

    def work(text):
        chat([system("Label the mail."), user(text)], tools, model="meta-llama/Llama-3.1-8B")

    texts = ["You won a prize!", "Meeting at two", "A prize for you", "Minutes of the meeting"]
    threads = [threading.Thread(target=work, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@app([calls(call("job_status", {"job": "j-8"})) for _ in range(6)] + [say("The job is done.")])
def polling_with_equal_arguments():
    """The model polls a job: six equal calls, and equal results but for the last."""
    tools = [tool("job_status", {"job": "string"})]
    messages = [user("Tell me when job j-8 is done")]
    number = 0
    while (message := chat(messages, tools)).get("tool_calls"):
        number += 1
        state = "done" if number == 6 else "running"
        messages += [message, result(message["tool_calls"][0], {"state": state})]
    print(message["content"])


@app([say("Score: 7"), say("Score: 8"), say("Score: 7")])
def judge_asked_three_times():
    """A judge is asked the same three times in a row, byte for byte, for a mean."""
    for _ in range(3):
        chat([system("Score the answer from 1 to 10."), user("Q: 2+2? A: 4")], temperature=1)


@app([say("all is well")] * 3)
def monitor_that_asks_the_same():
    """A monitor asks the same each minute (here: sooner), and keeps nothing."""
    import time

    for _ in range(3):
        respond("Status page: all green. One line, please.", store=False)
        time.sleep(0.3)


@app(
    [
        calls(call("weather", {"city": "Bern"})),
        say("Bern: 9 degrees."),
        say("The answer is correct and short."),
        say("Good, 9/10."),
    ]
)
def transcript_given_to_a_critic():
    """The conversation is given to a critic as text: calls, results and all in one message."""
    tools = [tool("weather", {"city": "string"})]
    messages = [user("Bern?")]
    message = chat(messages, tools)
    messages += [message, result(message["tool_calls"][0], "9")]
    messages.append(chat(messages, tools))
    transcript = json.dumps(messages, indent=1)
    critic = [system("You are a critic."), user(f"Judge this:\n{transcript}")]
    critic += [chat(critic, model="gpt-4.1"), user("A score?")]
    print(chat(critic, model="gpt-4.1")["content"])


@app(
    [
        calls(call("start_export", {"table": "orders"})),
        say("The export runs; I'll tell you when it is done."),
        calls(call("open_ticket", {"title": "late order"})),
        say("Ticket 5. And your export of orders is done: orders.csv"),
    ]
)
def asynchronous_tool():
    """A tool that is answered "started" at once; its outcome is added to a later message of the
    user, when another call has been made in between."""
    tools = [
        tool("start_export", {"table": "string"}),
        tool("open_ticket", {"title": "string"}),
    ]
    messages = [user("Export the orders")]
    message = chat(messages, tools)
    messages += [message, result(message["tool_calls"][0], {"status": "started", "job": 8})]
    messages += [chat(messages, tools), user("Open a ticket about a late order")]
    message = chat(messages, tools)
    messages += [message, result(message["tool_calls"][0], "5")]
    messages.append(user("<job id=8>orders.csv is ready</job>"))
    print(chat(messages, tools)["content"])


@app(
    [
        calls(call("ask_user", {"question": "Which Springfield?"})),
        say("Springfield, Oregon has 62,000 people."),
    ]
)
def question_to_the_user_as_a_tool():
    """The model asks the user by a tool; the app keeps question and answer as plain messages."""
    tools = [tool("ask_user", {"question": "string"})]
    messages = [user("How many people live in Springfield?")]
    message = chat(messages, tools)
    question = arguments(message["tool_calls"][0])["question"]
    messages += [{"role": "assistant", "content": question}, user("Oregon")]
    print(chat(messages, tools)["content"])


@app(
    [
        calls(call("get_schema", {}), call("get_rows", {"limit": 3})),
        say("The table has three columns."),
    ]
)
def results_as_one_structured_message():
    """A Responses app whose tools give files and images, and results in another order."""
    tools = [flat_tool("get_schema", {}), flat_tool("get_rows", {"limit": "integer"})]
    asked = [user("What is in the table?")]
    items = respond(asked, tools)["output"]
    outputs = [
        {
            "type": "function_call_output",
            "call_id": item["call_id"],
            "output": [{"type": "input_text", "text": f"{item['name']}: a, b, c"}],
        }
        for item in reversed(items)
    ]
    print(respond([*asked, *items, *outputs], tools)["output"][0]["content"])


@app([say("1"), say("2"), say("1")])
def openai_agents_best_of_three():
    """Three answers at once, the majority wins; the question stays as it is."""
    import asyncio

    import openai

    async def ask_all():
        ask = openai.AsyncOpenAI(api_key="sk-none", base_url=openai_url())
        made = [
            ask.chat.completions.create(
                model=CHAT_MODEL, messages=[user("Is 1 or 2 the smallest prime?")], temperature=1
            )
            for _ in range(3)
        ]
        return [one.choices[0].message.content for one in await asyncio.gather(*made)]

    print(asyncio.run(ask_all()))
