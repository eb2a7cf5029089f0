"""An agent of OpenAI's Agents SDK with a shell; its tracing is on, as it is by default."""

import asyncio
import subprocess
import sys

from agents import Agent, Runner, function_tool


@function_tool
def shell(command: str) -> str:
    """Run a command of the shell.

    Args:
        command: the command.
    """
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True).stdout


async def main(prompt: str) -> None:
    agent = Agent(name="Reader", instructions="Answer briefly.", model="gpt-4.1", tools=[shell])
    result = Runner.run_streamed(agent, prompt, max_turns=4)
    async for _ in result.stream_events():
        pass
    print(result.final_output)


asyncio.run(main(sys.argv[1]))
