"""HTTP/1.1 on both sides: `asyncio.Protocol`s over httptools, without a task per read.

`head` parses and writes message heads (httptools validates them), `body` finds the ends of chunks
and messages, `server` is the side an application talks to, `client` the side that talks to a
provider, `socket` has the operations that asyncio lacks. Sources: RFC 9110, RFC 9112.
"""
