"""Search the smallest tape that still shows a failure, with a judge that says whether it does.

`search` holds the tape and accepts smaller ones; `passes` makes smaller ones, from whole exchanges
down to single characters; `failure` distinguishes failures. Every tape that is tried is complete:
its events are framed, its JSON is valid, its checksums and lengths are right.
"""
