"""Play tapes as the provider: same status, head, bytes, boundaries, times and ending.

Never goes to the network: what is not on the tapes is refused with the nearest recorded request.
`player` holds the tapes and counts, `play` serves one request.
"""
