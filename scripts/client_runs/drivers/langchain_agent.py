"""An agent of LangChain with a shell."""

import subprocess
import sys

from langchain.agents import create_agent
from langchain_core.tools import tool


@tool
def shell(command: str) -> str:
    """Run a command of the shell."""
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True).stdout


agent = create_agent("openai:gpt-4.1", [shell], system_prompt="Answer briefly.")
asked = {"messages": [("user", sys.argv[1])]}
said = [
    part
    for mode, part in agent.stream(asked, stream_mode=["messages", "values"])
    if mode == "values"
]
print(said[-1]["messages"][-1].text)
