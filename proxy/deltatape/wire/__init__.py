"""Bytes to units: event framing, content-coding, strict JSON. Pure and incremental.

Nothing here raises on any input. What a standard drops, replaces or refuses is kept beside the
result, and no result but times and tape lines depends on how the bytes were cut.
"""
