"""Breaks streams inside of LiteLLM's proxy, as a guardrail of one's own may.

The user that a request names says how.
"""

import re
from collections.abc import AsyncIterator
from typing import Any

from litellm.integrations.custom_logger import CustomLogger

_PARTIAL_JSON = re.compile(rb'("partial_json": ?)"(?:\\.|[^"\\])*"')


class Breaking(CustomLogger):  # type: ignore[misc]
    """Changes the chunks that the proxy is about to send."""

    async def async_post_call_streaming_iterator_hook(
        self, user_api_key_dict: object, response: AsyncIterator[Any], request_data: dict[str, Any]
    ) -> AsyncIterator[Any]:
        """Yield the chunks for the application."""
        del user_api_key_dict
        told = request_data.get("metadata") or {}
        how = request_data.get("user") or told.get("user_id") or ""
        if how == "messages-empty":  # its chunks are bytes, which may end anywhere
            body = b"".join([chunk async for chunk in response])
            yield _PARTIAL_JSON.sub(rb'\1""', body)
            return
        async for chunk in response:
            if how == "responses-cut" and getattr(chunk, "delta", None) == "Gent":
                return
            if not how.startswith("chat-") or _is_sent(chunk, how):
                yield chunk


def _is_sent(chunk: Any, how: str) -> bool:
    """Break a chunk of Chat Completions; return whether it is still sent."""
    for choice in getattr(chunk, "choices", ()):
        if how == "chat-finish" and choice.finish_reason:
            choice.finish_reason = "stop"
        for call in choice.delta.tool_calls or ():
            if how == "chat-drop" and call.function.arguments == "Gent":
                return False
            if how == "chat-empty":
                call.function.arguments = ""
            if how == "chat-index":
                call.index = 0
            if how == "chat-id" and call.id:
                call.id = f"call_{call.index}"
    return True


handler = Breaking()
