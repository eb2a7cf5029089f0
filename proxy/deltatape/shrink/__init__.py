"""Search the smallest tape that still shows a failure, with a judge that tells whether it does.

`search` holds the tape as it is and takes smaller ones; `passes` are the ways in which smaller ones
are made, from whole exchanges down to single characters; `deletion` asks as little as can be.
`failure` tells failures apart. Every tape that is offered is whole: its events are framed, its JSON
is JSON, its checksums and lengths are right.
"""
