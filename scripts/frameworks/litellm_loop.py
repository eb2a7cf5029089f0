"""LiteLLM, in the loop that its documentation shows."""

import inspect
import json
import os

import litellm
from common import ANTHROPIC, CHAT, EVERY, GEMINI, MODEL, RESPONSES, SYSTEM, main
from report import Report

litellm.suppress_debug_info = True
MOST = 8
NAMES = {str: "string", int: "integer", float: "number"}
prefix = "anthropic/" if ANTHROPIC else "gemini/" if GEMINI else "openai/"
options = {"model": prefix + MODEL, "num_retries": 2}


def schema(tool):
    """A tool as JSON Schema."""
    parameters = inspect.signature(tool).parameters.values()
    kinds = {each.name: {"type": NAMES.get(each.annotation, "string")} for each in parameters}
    required = [each.name for each in parameters if each.default is each.empty]
    return {"type": "object", "properties": kinds, "required": required}


def described(tool):
    """A tool as chat completions want it."""
    told = {"name": tool.__name__, "description": tool.__doc__, "parameters": schema(tool)}
    return {"type": "function", "function": told}


def executed(name, arguments):
    """What a tool says."""
    try:
        return EVERY[name](**json.loads(arguments or "{}"))
    except (KeyError, TypeError) as error:
        return f"failed: {error!r}"


async def asked(talk, messages, **more):
    """A reply, also of a stream."""
    if talk.reasoning and not CHAT:
        more["reasoning_effort"] = "low"
    if GEMINI:
        # Of the variables for it none is set by itself; see the documentation of `record`.
        more["api_base"] = f"{os.environ['GOOGLE_GEMINI_BASE_URL']}/v1beta"
    response = await litellm.acompletion(messages=messages, stream=talk.streamed, **options, **more)
    if talk.streamed:
        chunks = [chunk async for chunk in response]
        response = litellm.stream_chunk_builder(chunks, messages=messages)
    return response.choices[0].message


async def converse(talk):
    """Hold a conversation."""
    if RESPONSES:
        return await through_responses(talk)
    messages = [{"role": "system", "content": SYSTEM}]
    tools = [described(tool) for tool in talk.tools]
    said = None
    for prompt in talk.prompts:
        messages.append({"role": "user", "content": prompt})
        for _ in range(MOST):
            message = await asked(talk, messages, tools=tools)
            messages.append(message)
            said = message.content
            for call in message.tool_calls or ():
                text = executed(call.function.name, call.function.arguments)
                told = {"role": "tool", "tool_call_id": call.id, "content": text}
                messages.append({**told, "name": call.function.name})
            if not message.tool_calls:
                break
    return said


async def through_responses(talk):
    """The same with the Responses API."""
    items = []
    tools = [{"type": "function", **described(tool)["function"]} for tool in talk.tools]
    more = {"include": ["reasoning.encrypted_content"]} if talk.reasoning else {}
    if talk.reasoning:
        more["reasoning"] = {"effort": "low", "summary": "auto"}
    for prompt in talk.prompts:
        items.append({"role": "user", "content": prompt})
        for _ in range(MOST):
            response = await litellm.aresponses(
                model=options["model"], input=items, tools=tools, stream=talk.streamed, **more
            )
            if talk.streamed:
                async for event in response:
                    if event.type == "response.completed":
                        done = event.response
                response = done
            output = [item.model_dump(exclude_none=True) for item in response.output]
            items += output
            calls = [item for item in output if item["type"] == "function_call"]
            for call in calls:
                text = executed(call["name"], call["arguments"])
                told = {"type": "function_call_output", "call_id": call["call_id"]}
                items.append({**told, "output": text})
            if not calls:
                break
    return "done"


async def structured(talk):
    """The answer has a type."""
    messages = [{"role": "user", "content": talk.prompts[0]}]
    return (await asked(talk, messages, response_format=Report)).content


main(converse, structured=structured)
