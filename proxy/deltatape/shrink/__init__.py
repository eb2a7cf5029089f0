"""Search the smallest tape that still shows a failure, with a judge that says whether it does.

`search` holds the tape as it is and takes smaller ones; `passes` are the ways in which smaller ones
are made, from whole exchanges down to single characters; `deletion` asks as little as can be.
`failure` distinguishes failures. Every offered tape is complete: its events are framed, its JSON
is JSON, its checksums and lengths are right.
"""
