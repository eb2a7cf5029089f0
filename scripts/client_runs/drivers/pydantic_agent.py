"""An agent of Pydantic AI with a shell."""

import asyncio
import subprocess
import sys

from pydantic_ai import Agent

agent = Agent("openai-chat:gpt-4.1", instructions="Answer briefly.")


@agent.tool_plain
def shell(command: str) -> str:
    """Run a command of the shell."""
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True).stdout


async def main(prompt: str) -> None:
    async with agent.run_stream(prompt) as result:
        print(await result.get_output())


asyncio.run(main(sys.argv[1]))
