"""LlamaIndex's agents."""

import os

from common import ANTHROPIC, CHAT, GEMINI, MODEL, SYSTEM, main
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.memory import Memory
from llama_index.core.tools import FunctionTool
from report import Report


def model(talk):
    """The model of the dialect."""
    if ANTHROPIC:
        from llama_index.llms.anthropic import Anthropic  # noqa: PLC0415 - imports cost seconds

        thinking = {"type": "enabled", "budget_tokens": 1024} if talk.reasoning else None
        more = {"thinking_dict": thinking, "temperature": 1.0} if talk.reasoning else {}
        return Anthropic(MODEL, max_tokens=2048, base_url=os.environ["ANTHROPIC_BASE_URL"], **more)
    if GEMINI:
        from llama_index.llms.google_genai import GoogleGenAI  # noqa: PLC0415

        return GoogleGenAI(MODEL, context_window=100_000, max_tokens=1000)
    from llama_index.llms.openai import OpenAI, OpenAIResponses  # noqa: PLC0415

    base = {"api_base": os.environ["OPENAI_BASE_URL"]}
    if CHAT:
        return OpenAI(MODEL, **base)
    reasoning = (
        {"reasoning_options": {"effort": "low", "summary": "auto"}} if talk.reasoning else {}
    )
    more = {"include": ["reasoning.encrypted_content"]} if talk.reasoning else {}
    return OpenAIResponses(MODEL, **base, **reasoning, **more)


def made(talk, tools, **options):
    """An agent."""
    functions = [FunctionTool.from_defaults(tool) for tool in tools]
    told = {"name": "assistant", "description": "Helps.", **options}
    return FunctionAgent(
        tools=functions, llm=model(talk), system_prompt=SYSTEM, streaming=talk.streamed, **told
    )


async def run(agent, talk):
    """Hold a conversation; the memory keeps it."""
    memory, said = Memory.from_defaults(session_id=talk.prompts[0]), None
    for prompt in talk.prompts:
        said = await agent.run(prompt, memory=memory)
    return said


async def converse(talk):
    """Hold a conversation."""
    return await run(made(talk, talk.tools), talk)


async def structured(talk):
    """The answer has a type."""
    return await run(made(talk, [], output_cls=Report), talk)


async def handoff(talk):
    """One agent hands over to another."""
    first = made(talk, [], name="reception", can_handoff_to=["forecaster"])
    second = made(talk, talk.tools, name="forecaster", description="Tells the weather.")
    return await run(AgentWorkflow([first, second], root_agent="reception"), talk)


main(converse, structured=structured, handoff=handoff)
