"""Instructor: answers that have a type."""

import instructor
from common import ANTHROPIC, CHAT, GEMINI, MODEL, main
from report import Report

name = "anthropic" if ANTHROPIC else "google" if GEMINI else "openai"
mode = {"mode": instructor.Mode.TOOLS} if CHAT else {}


async def converse(talk):
    """Ask for a typed answer; where it does not fit, Instructor asks again."""
    client = instructor.from_provider(f"{name}/{MODEL}", async_client=True, **mode)
    messages = [{"role": "user", "content": talk.prompts[0]}]
    if not talk.streamed:
        asked = client.chat.completions.create
        return await asked(response_model=Report, messages=messages, max_retries=2)
    said = None
    async for part in client.chat.completions.create_partial(
        response_model=Report, messages=messages
    ):
        said = part
    return said


main(converse)
