"""Analyses tapes while they are recorded, in a process of its own.

A recorder (`record`) starts the process with a `LiveAnalysis` (`client`); `analyst` is what runs in
it: it follows the tapes, and reports each exchange after its end. They exchange the JSON lines of
`messages`. So the recorder imports no dialect and no rule, and streams never wait for an analysis;
if the process dies or lags, recording goes on.
"""
