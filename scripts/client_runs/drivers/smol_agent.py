"""An agent of smolagents that calls tools, with a shell."""

import os
import subprocess
import sys

from smolagents import OpenAIModel, ToolCallingAgent, tool


@tool
def shell(command: str) -> str:
    """Run a command of the shell.

    Args:
        command: the command.
    """
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True).stdout


model = OpenAIModel("gpt-4.1", api_base=os.environ["OPENAI_BASE_URL"])
agent = ToolCallingAgent([shell], model, stream_outputs=True, max_steps=2)
print(agent.run(sys.argv[1]))
