"""OpenAI's Agents SDK for Python."""

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from common import CHAT, MODEL, SYSTEM, main
from openai import AsyncOpenAI
from openai.types.shared import Reasoning
from report import Report

set_tracing_disabled(True)


def made(talk):
    """An agent."""
    kind = OpenAIChatCompletionsModel if CHAT else OpenAIResponsesModel
    thinks = talk.reasoning and not CHAT
    settings = ModelSettings(
        include_usage=True,
        reasoning=Reasoning(effort="low", summary="auto") if thinks else None,
        response_include=["reasoning.encrypted_content"] if thinks else None,
    )
    return Agent(
        name="Assistant",
        instructions=SYSTEM,
        model=kind(model=MODEL, openai_client=AsyncOpenAI()),
        model_settings=settings,
        tools=[function_tool(tool, strict_mode=False) for tool in talk.tools],
    )


async def run(agent, talk):
    """Hold a conversation with an agent."""
    session = SQLiteSession(talk.prompts[0]) if len(talk.prompts) > 1 else None
    said = None
    for prompt in talk.prompts:
        if talk.streamed:
            result = Runner.run_streamed(agent, prompt, session=session)
            async for _ in result.stream_events():
                pass
        else:
            result = await Runner.run(agent, prompt, session=session)
        said = result.final_output
    return said


async def converse(talk):
    """Hold a conversation."""
    return await run(made(talk), talk)


async def structured(talk):
    """The answer has a type."""
    return await run(made(talk).clone(output_type=Report), talk)


async def handoff(talk):
    """One agent hands over to another."""
    forecaster = made(talk).clone(name="Forecaster", instructions="You tell the weather.")
    return await run(made(talk).clone(name="Reception", tools=[], handoffs=[forecaster]), talk)


main(converse, structured=structured, handoff=handoff)
