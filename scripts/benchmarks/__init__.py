"""The benchmark: what deltatape costs beside other proxies, beside SDKs, and by size.

`scripts/bench` starts it. Its own provider (`provider`) and clients (`clients`) stand on both sides
of each proxy (`proxies`). `measure` runs one scenario (`scenarios`) against one proxy and reads the
CPU time and memory of its processes (`processes`); `run` does so for all, round by round; `table`
and `page` report the results.

`accumulators` compares rebuilding a reply (`measure_rebuild`) with the official SDKs
(`measure_sdk`), and `sizes` decodes larger and larger bodies (`measure_size`). `sample_reply` has
the text and arguments in them, `languages` the events of each dialect.

`scripts/soak` starts a long run with the same provider (`soak`): clients of several kinds
(`soak_clients`), their answers held against the tapes (`soak_tally`, `soak_tapes`), and judges of
what has to stay flat (`steady`).

Invariants: traffic goes to 127.0.0.1 only; every run is bounded in count and time; an answer that
lost a byte, a tape that lacks one, or a reply that differs from the SDK's fails the whole run.
"""
