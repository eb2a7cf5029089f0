"""Replay without I/O: which recorded exchange answers a request, and when to send which bytes."""
