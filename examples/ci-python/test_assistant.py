"""The terminal assistant against the stream that it once had no answer to.

In this process: pytest's fixture sets the base URL for the length of a test.
"""

# ruff: noqa: INP001 - programs in a folder, no package
import importlib
import sys

import pytest
from programs import ASSISTANT

TAPE = "../../recordings/incidents/5-agent-loop/fixed.tape"
QUESTION = {"role": "user", "content": "What is in src?"}
ANSWER = "There are agent.py and ui.py in src."

sys.path.insert(0, str(ASSISTANT.parent))
assistant = importlib.import_module(ASSISTANT.stem)


# The broken version did not send tool_choice yet, and shall hear the same stream all the same.
@pytest.mark.tape(TAPE, volatile="tool_choice")
def test_a_call_that_comes_in_fragments_is_made() -> None:
    """Its id and name come in one event, its arguments in the next ones."""
    assert assistant.respond([assistant.SYSTEM, QUESTION]) == ANSWER


@pytest.mark.tape(TAPE, volatile="tool_choice", torture=("every-byte", "coalesced"))
def test_it_does_not_matter_how_the_network_cuts_the_stream() -> None:
    """A read may bring a byte, or everything."""
    assert assistant.respond([assistant.SYSTEM, QUESTION]) == ANSWER
