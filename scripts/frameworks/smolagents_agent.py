"""smolagents' agent that calls tools."""

import asyncio
import os

from common import MODEL, SYSTEM, main
from smolagents import LogLevel, OpenAIModel, ToolCallingAgent, tool


async def converse(talk):
    """Hold a conversation; the answer is the call of a tool, too."""

    def run():
        tools = [tool(each) for each in talk.tools]
        model = OpenAIModel(MODEL, api_base=os.environ["OPENAI_BASE_URL"])
        agent = ToolCallingAgent(
            tools, model, stream_outputs=talk.streamed, verbosity_level=LogLevel.OFF, max_steps=5
        )
        # Its own is of 6,000 characters and more.
        agent.prompt_templates["system_prompt"] = SYSTEM
        said = None
        for at, prompt in enumerate(talk.prompts):
            said = agent.run(prompt, reset=at == 0)
        return said

    return await asyncio.to_thread(run)


main(converse)
