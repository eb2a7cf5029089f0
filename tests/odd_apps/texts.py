"""Answers whose text looks like trouble, and is what was asked for."""

from .kit import app, chat, claude, respond, result, system, tool, user
from .provider import call, calls, say


@app(
    [
        say('To call it, the model writes <tool_call>{"name": "x"}</tool_call> and stops there.'),
        say("The token <|im_end|> ends a message of ChatML; <|endoftext|> ends a text."),
        say("Yes."),
    ]
)
def prose_about_markup():
    """A tutor for chat templates: end tokens and tags are its subject."""
    messages = [user("How does Hermes write calls?")]
    messages += [chat(messages), user("And what is <|im_end|>?")]
    messages += [chat(messages), user("Is that all?")]
    print(chat(messages)["content"])


@app(
    [
        say(
            "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head>"
            "<body>nginx</body></html>"
        ),
        say("<p>done</p>"),
    ]
)
def html_was_asked_for():
    """The user wants an error page for nginx; HTML is the answer."""
    messages = [user("Write me a 502 page as HTML, nothing else")]
    messages += [chat(messages), user("now just a paragraph")]
    print(chat(messages)["content"])


@app(
    [
        say("UTF-8 read as Latin-1 turns é into Ã© and – into â€“; the café becomes cafÃ©."),
        say("Encode it as Latin-1 and decode it as UTF-8."),
    ]
)
def mojibake_explained():
    """A question about mojibake, with examples of it."""
    messages = [user("Why do I see cafÃ©?")]
    messages += [claude(messages), user("How do I undo it?")]
    print(claude(messages)["content"])


@app(
    [
        say("ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha", piece=3),
        say("no no no no no no", piece=3),
    ]
)
def repeated_words():
    """Repeated words make equal deltas one after the other."""
    messages = [user("laugh")]
    messages += [chat(messages), user("and refuse")]
    print(chat(messages)["content"])


@app(
    [
        calls(call("js", {"code": "String({})"})),
        say("JavaScript prints [object Object], since toString knows no better."),
    ]
)
def object_object_is_the_result():
    """The tool evaluates JavaScript, and the result is that very text."""
    tools = [tool("js", {"code": "string"})]
    messages = [user("What does String({}) give?")]
    message = chat(messages, tools)
    messages += [message, result(message["tool_calls"][0], "[object Object]")]
    print(chat(messages, tools)["content"])


@app(
    [
        calls(call("py", {"code": "async def f(): pass\nprint(f())"})),
        say("You forgot to await it."),
    ]
)
def coroutine_is_the_result():
    """The tool ran the user's program, and this is what the program printed."""
    tools = [tool("py", {"code": "string"})]
    messages = [user("Run my program")]
    message = chat(messages, tools)
    printed = (
        "<coroutine object f at 0x7f2b1c0d5a40>\nRuntimeWarning: coroutine 'f' was never awaited"
    )
    messages += [message, result(message["tool_calls"][0], printed)]
    print(chat(messages, tools)["content"])


@app(
    [
        calls(call("lint", {"path": "app.py"})),
        say("Line 3 is no valid JSON: a comma is missing."),
    ]
)
def error_texts_as_results():
    """A linter reports errors of json and of JavaScript: they are its findings, not the app's
    troubles."""
    tools = [tool("lint", {"path": "string"})]
    messages = [user("Check my files")]
    message = chat(messages, tools)
    told = (
        "config.json:3: Expecting ',' delimiter: line 3 column 9 (char 41)\n"
        "index.js:8: SyntaxError: Unexpected end of JSON input"
    )
    messages += [message, result(message["tool_calls"][0], told)]
    print(chat(messages, tools)["content"])


@app([say(""), say("Was there anything?")])
def empty_answer_wanted():
    """A moderator that says nothing when all is fine, as its prompt wants."""
    messages = [system("Say nothing if the message is fine."), user("Nice day!")]
    chat(messages)
    messages += [{"role": "assistant", "content": "(ok)"}, user("?")]
    print(chat(messages)["content"])


@app([say("NO"), say("NO"), say("YES")])
def one_word_answers():
    """A classifier over Responses: one word, no history."""
    for text in ("I love it", "It is fine", "I want my money back"):
        respond([system("Is this a complaint? YES or NO."), user(text)], max_output_tokens=16)


@app(
    [
        calls(
            call(
                "write_file",
                {"path": "t.json", "content": '{"name": "x", "arguments": "{\\"a\\": 1}"}'},
            )
        ),
        say("The fixture is written."),
    ]
)
def arguments_that_hold_json():
    """Arguments with JSON in a string in JSON."""
    tools = [tool("write_file", {"path": "string", "content": "string"})]
    messages = [user("Write a fixture of a tool call")]
    message = chat(messages, tools)
    messages += [message, result(message["tool_calls"][0], {"ok": True, "bytes": 41})]
    print(chat(messages, tools)["content"])
