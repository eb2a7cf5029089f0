"""Reads what a program and an MCP server said to each other.

An answer may come in another exchange, where a stream broke and was taken up again, or over the
transport of 2024 whose answers come on a stream of their own: then it is not known here.
"""

import json
from collections.abc import Iterator, Mapping, Sequence

from deltatape.diagnose.rebuild import Analysis
from deltatape.dialects.mcp import messages_in
from deltatape.model.exchange import EndReason, Exchange
from deltatape.model.tool_server import MCP, ServedCall, ToolServerTalk, stdio_name

_CALL = "tools/call"
_LIST = "tools/list"
_ELSEWHERE = frozenset({None, EndReason.COMPLETE, EndReason.STOPPED})
"""After these endings an answer may come elsewhere, or later."""

_Message = Mapping[str, object]
_Answers = Mapping[str, tuple[_Message, int]]
"""By the id of a request: its answer, and when that came."""
_NO_ANSWER = (None, None)


def read_talk(analysis: Analysis) -> ToolServerTalk | None:
    """Return what an exchange with a tool server was about; None: it is with another one."""
    if analysis.reply.dialect != MCP:
        return None
    exchange = analysis.exchange
    asked = messages_in(exchange.request.content.decode(errors="replace"))
    told = [(each, event) for event in analysis.stream.events for each in messages_in(event.data)]
    said = [each for each, _ in told]
    answers = {_id(each): (each, event.t_ns) for each, event in told if "method" not in each}
    requests = [each for each in asked if "id" in each and "method" in each]
    methods = (str(each["method"]) for each in asked or said if "method" in each)
    errors = (_error(each) for each, _ in answers.values())
    return ToolServerTalk(
        methods=tuple(dict.fromkeys(methods)),
        calls=tuple(_calls(exchange, requests, answers)),
        tools=tuple(_tools(requests, answers)),
        answered=all(_id(each) in answers for each in requests),
        error=next(filter(None, errors), ""),
    )


def _id(message: _Message) -> str:
    """Return what tells an id from others: 1 is not "1"."""
    return json.dumps(message.get("id"))


def _error(answer: _Message) -> str:
    error = answer.get("error")
    if not isinstance(error, dict):
        return ""
    return str(error.get("message") or error)


def _calls(
    exchange: Exchange,
    requests: Sequence[_Message],
    answers: _Answers,
) -> Iterator[ServedCall]:
    for request in requests:
        params = request.get("params")
        if request["method"] != _CALL or not isinstance(params, dict):
            continue
        answer, answered_ns = answers.get(_id(request), _NO_ANSWER)
        texts, structured, other, failed = _result(answer)
        arguments = params.get("arguments")
        yield ServedCall(
            exchange=exchange.number,
            server=exchange.request.upstream,
            name=str(params.get("name")),
            arguments=json.dumps({} if arguments is None else arguments, ensure_ascii=False),
            asked_ns=exchange.request.t_ns if exchange.timed else None,
            answered_ns=answered_ns if exchange.timed else None,
            texts=texts,
            structured=structured,
            other=other,
            failed=failed,
            ending="" if answer is not None else _ending(exchange),
        )


def _ending(exchange: Exchange) -> str:
    """Return how an exchange ended without the answer; "" if that says nothing."""
    if exchange.end is None or exchange.end.reason in _ELSEWHERE:
        return ""
    over_http = not stdio_name(exchange.request.upstream)
    streamed = exchange.response is not None
    return "" if over_http and streamed else exchange.end.reason.value


def _result(answer: _Message | None) -> tuple[tuple[str, ...] | None, str, bool, bool]:
    """Return the texts of an answer, its structured content, whether it has more, if it failed."""
    if answer is None:
        return None, "", False, False
    result = answer.get("result")
    if not isinstance(result, dict):
        return (_error(answer),), "", False, True
    content = result.get("content")
    parts = (
        [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    )
    texts = tuple(str(each["text"]) for each in parts if isinstance(each.get("text"), str))
    structured = result.get("structuredContent")
    return (
        texts,
        "" if structured is None else json.dumps(structured, ensure_ascii=False),
        len(texts) < len(parts) or not isinstance(content, list),
        result.get("isError") is True,
    )


def _tools(requests: Sequence[_Message], answers: _Answers) -> Iterator[str]:
    for request in requests:
        answer, _ = answers.get(_id(request), _NO_ANSWER)
        result = answer.get("result") if request["method"] == _LIST and answer else None
        listed = result.get("tools") if isinstance(result, dict) else None
        for tool in listed if isinstance(listed, list) else ():
            if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                yield tool["name"]
