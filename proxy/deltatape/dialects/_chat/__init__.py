"""Chat completions: reducer and request reader, shared by several dialects.

Shapes: https://platform.openai.com/docs/api-reference/chat/streaming. Deltas of tool calls are
keyed by `(choices[].index, tool_calls[].index)`; a stream ends with a `finish_reason` per choice
and `data: [DONE]`. The rest of this package is about those who do it differently.
"""
