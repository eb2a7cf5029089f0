"""LangChain's agents."""

from chat_models import chat_model
from common import SYSTEM, main
from langchain.agents import create_agent
from langchain_core.tools import tool
from report import Report


async def run(agent, talk):
    """Hold a conversation with an agent."""
    state = {"messages": []}
    for prompt in talk.prompts:
        asked = {"messages": [*state["messages"], {"role": "user", "content": prompt}]}
        if talk.streamed:
            async for mode, part in agent.astream(asked, stream_mode=["messages", "values"]):
                state = part if mode == "values" else state
        else:
            state = await agent.ainvoke(asked)
    return state["messages"][-1].text


def made(talk, tools, **options):
    """An agent."""
    return create_agent(chat_model(talk), tools, system_prompt=SYSTEM, **options)


async def converse(talk):
    """Hold a conversation."""
    return await run(made(talk, talk.tools), talk)


async def structured(talk):
    """The answer has a type."""
    return await run(made(talk, [], response_format=Report), talk)


async def handoff(talk):
    """A tool of one agent runs another."""

    @tool
    async def transfer_to_forecaster() -> str:
        """Hand over to the forecaster."""
        return await converse(talk)

    return await run(made(talk, [transfer_to_forecaster]), talk)


main(converse, structured=structured, revised=structured, handoff=handoff)
