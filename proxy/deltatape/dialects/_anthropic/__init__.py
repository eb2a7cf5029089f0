"""Anthropic's messages: reducer and request reader, shared by several dialects.

Shapes: https://docs.anthropic.com/en/docs/build-with-claude/streaming. A message is made of content
blocks, each with an index, a start, deltas and a stop; `message_delta` brings the stop reason and
`message_stop` ends the stream. Amazon carries the same events in messages of its own.
"""
