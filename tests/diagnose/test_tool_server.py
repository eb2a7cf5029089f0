"""What is read of an exchange with an MCP server."""

import json
from dataclasses import replace

import pytest

from deltatape.diagnose.rebuild import analyse
from deltatape.diagnose.tool_server import read_talk
from deltatape.model.exchange import End, EndReason, Exchange, Source
from deltatape.model.tool_server import ServedCall, ToolServerTalk, stdio_name, stdio_upstream
from deltatape.render.summary import exchange_line


def exchange(
    *requests: object, answers: object = None, url: str = "http://s.stdio.invalid/mcp"
) -> Exchange:
    asked = [{"jsonrpc": "2.0", **each} for each in requests if isinstance(each, dict)]
    body = json.dumps(asked[0] if len(asked) == 1 else asked).encode()
    told = b"" if answers is None else json.dumps(answers).encode()
    return Exchange.from_body(told, content_type="application/json", url=url, request=body)


def answer(number: object = 1, **members: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, **members}


def call(number: object = 1, **params: object) -> dict[str, object]:
    return {"id": number, "method": "tools/call", "params": {"name": "get", **params}}


def talk(exchange: Exchange) -> ToolServerTalk:
    found = read_talk(analyse(exchange))
    assert found is not None
    return found


def served(exchange: Exchange) -> ServedCall:
    (one,) = talk(exchange).calls
    return one


def line(exchange: Exchange) -> str:
    return exchange_line(analyse(exchange), ())


def test_other_exchanges_are_with_nobody() -> None:
    assert (
        read_talk(analyse(replace(exchange(), request=exchange(url="http://h/").request))) is None
    )


def test_a_call_and_its_result() -> None:
    content = [{"type": "text", "text": "7°"}, {"type": "image", "data": ""}, "odd"]
    result = {"content": content, "structuredContent": {"t": 7}, "isError": False}
    found = exchange(call(arguments={"city": "Ghent"}), answers=answer(result=result))
    assert served(found) == ServedCall(
        exchange=1,
        server="http://s.stdio.invalid",
        name="get",
        arguments='{"city": "Ghent"}',
        asked_ns=None,
        answered_ns=None,
        texts=("7°",),
        structured='{"t": 7}',
        other=True,
    )
    assert talk(found).answered
    assert "stdio s 200: MCP tools/call, get answered, 2 characters" in line(found)


def test_a_call_without_arguments_has_empty_ones() -> None:
    assert served(exchange(call())).arguments == "{}"


@pytest.mark.parametrize("result", [{"content": [], "isError": True}, None, "odd"])
def test_what_the_server_calls_an_error(result: object) -> None:
    found = served(exchange(call(), answers=answer(result=result)))
    assert found.failed


@pytest.mark.parametrize(
    ("error", "text"), [({"code": 1, "message": "no"}, "no"), ({"code": 1}, "{'code': 1}")]
)
def test_an_error_instead_of_a_result(error: object, text: str) -> None:
    found = exchange(call(), answers=answer(error=error))
    assert served(found).texts == (text,)
    assert f"get failed: {text}" in line(found)
    assert talk(found).error == text


def test_a_result_without_content_may_be_anything() -> None:
    assert served(exchange(call(), answers=answer(result={}))).other


def test_an_id_as_text_is_another_one() -> None:
    found = exchange(call(1), answers=answer("1", result={}))
    assert served(found).texts is None
    assert not talk(found).answered
    assert "get not answered here" in line(found)


def test_a_batch_has_several_calls_and_what_has_no_parameters_is_none() -> None:
    found = exchange(call(1), call(2), {"id": 3, "method": "tools/call"}, answers=[answer(2)])
    assert [each.texts is None for each in talk(found).calls] == [True, False]


@pytest.mark.parametrize(
    ("result", "tools"),
    [
        ({"tools": [{"name": "a"}, {"name": 1}, "odd", {"name": "b"}]}, ("a", "b")),
        ({"tools": 1}, ()),
        (None, ()),
    ],
)
def test_the_tools_that_a_server_lists(result: object, tools: tuple[str, ...]) -> None:
    found = exchange({"id": 1, "method": "tools/list"}, answers=answer(result=result))
    assert talk(found).tools == tools
    assert (", 2 tools" in line(found)) == bool(tools)


def test_nothing_is_listed_without_an_answer() -> None:
    assert talk(exchange({"id": 1, "method": "tools/list"})).tools == ()


def test_what_the_server_says_of_its_own_accord() -> None:
    found = exchange(answers=answer(method="roots/list"))
    assert talk(found).methods == ("roots/list",)
    assert "MCP roots/list" in line(found)


def test_an_answer_of_the_client_has_no_method() -> None:
    assert "MCP messages" in line(exchange({"id": 1, "result": {}}))


def test_an_error_of_another_method_is_shown() -> None:
    found = exchange({"id": 1, "method": "ping"}, answers=answer(error={"message": "no"}))
    assert "MCP ping, error no" in line(found)


def ended(found: Exchange, reason: EndReason) -> Exchange:
    end = End(t_ns=9, reason=reason, bytes=0, sha256="", detail="", recorder={}, line=None)
    return replace(found, source=Source.GATEWAY, end=end)


@pytest.mark.parametrize(
    ("reason", "url", "streamed", "ending"),
    [
        (EndReason.COMPLETE, "http://s.stdio.invalid/mcp", True, ""),
        (EndReason.STOPPED, "http://s.stdio.invalid/mcp", False, ""),
        (EndReason.UPSTREAM_CLOSED, "http://s.stdio.invalid/mcp", True, "upstream_closed"),
        (EndReason.UPSTREAM_CLOSED, "http://h/mcp", True, ""),
        (EndReason.CLIENT_CLOSED, "http://h/mcp", False, "client_closed"),
    ],
)
def test_how_an_exchange_ends_without_an_answer(
    reason: EndReason, url: str, *, streamed: bool, ending: str
) -> None:
    found = ended(exchange(call(), url=url), reason)
    found = found if streamed else replace(found, response=None)
    assert served(found).ending == ending
    assert served(ended(exchange(call(), answers=answer(result={})), reason)).ending == ""


def test_a_server_on_stdin_and_stdout_is_told_from_a_host() -> None:
    assert stdio_name(stdio_upstream("weather")) == "weather"
    assert stdio_name("http://weather.example") == ""
