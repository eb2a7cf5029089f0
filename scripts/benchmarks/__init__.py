"""The benchmark: what deltatape costs beside other proxies, in one interleaved run.

`scripts/bench` starts it. A provider of its own (`provider`) and clients of its own (`clients`)
stand on both sides of each proxy (`proxies`); `measure` runs one scenario (`scenarios`) against
one of them and looks at its processes (`processes`); `run` goes through all of them, round by
round; `table` and `page` tell what came out.

Invariants: traffic goes to 127.0.0.1 only; every run is bounded in count and time; an answer that
lost a byte, or a tape that lacks one, fails the whole run.
"""
