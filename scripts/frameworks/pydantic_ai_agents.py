"""Pydantic AI."""

from common import ANTHROPIC, CHAT, GEMINI, MODEL, SYSTEM, main
from pydantic_ai import Agent
from report import Report

if CHAT:
    from pydantic_ai.models.openai import OpenAIChatModel as Model
    from pydantic_ai.providers.openai import OpenAIProvider as Provider

    thinking = {}
elif ANTHROPIC:
    from pydantic_ai.models.anthropic import AnthropicModel as Model
    from pydantic_ai.providers.anthropic import AnthropicProvider as Provider

    thinking = {"anthropic_thinking": {"type": "enabled", "budget_tokens": 1024}}
elif GEMINI:
    from pydantic_ai.models.google import GoogleModel as Model
    from pydantic_ai.providers.google import GoogleProvider as Provider

    thinking = {"google_thinking_config": {"include_thoughts": True}}
else:
    from pydantic_ai.models.openai import OpenAIResponsesModel as Model
    from pydantic_ai.providers.openai import OpenAIProvider as Provider

    thinking = {"openai_reasoning_effort": "low", "openai_reasoning_summary": "auto"}


def made(talk, tools, **options):
    """An agent."""
    model = Model(MODEL, provider=Provider())
    settings = thinking if talk.reasoning else None
    return Agent(model, tools=tools, model_settings=settings, instructions=SYSTEM, **options)


async def run(agent, talk):
    """Hold a conversation with an agent."""
    history, said = [], None
    for prompt in talk.prompts:
        if talk.streamed:
            async with agent.run_stream_events(prompt, message_history=history) as events:
                async for event in events:
                    result = getattr(event, "result", None)
        else:
            result = await agent.run(prompt, message_history=history)
        said = result.output
        history = result.all_messages()
    return said


async def converse(talk):
    """Hold a conversation."""
    return await run(made(talk, talk.tools), talk)


async def structured(talk):
    """The answer has a type."""
    return await run(made(talk, [], output_type=Report), talk)


async def handoff(talk):
    """A tool of one agent runs another."""

    async def transfer_to_forecaster() -> str:
        """Hand over to the forecaster."""
        return await converse(talk)

    return await run(made(talk, [transfer_to_forecaster]), talk)


main(converse, structured=structured, revised=structured, handoff=handoff)
