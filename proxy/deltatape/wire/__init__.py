"""Bytes to units: event framing, content-coding, strict JSON. Pure and incremental.

Nothing here raises on any input. What a standard drops, replaces or refuses is reported beside the
result. Only times and tape lines depend on how the bytes were split.
"""
