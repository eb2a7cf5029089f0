"""The benchmark: what deltatape costs beside other proxies, beside SDKs, and by size.

`scripts/bench` starts it. A provider of its own (`provider`) and clients of its own (`clients`)
stand on both sides of each proxy (`proxies`); `measure` runs one scenario (`scenarios`) against
one of them and looks at its processes (`processes`); `run` goes through all of them, round by
round; `table` and `page` tell what came out.

`accumulators` compares bytes to reply (`rebuilding`) with the official SDKs (`accumulating`), and
`sizes` has ever larger bodies decoded (`growing`): what is said in them is `speech`, how a dialect
puts it `languages`.

Invariants: traffic goes to 127.0.0.1 only; every run is bounded in count and time; an answer that
lost a byte, a tape that lacks one, or a reply that differs from the SDK's fails the whole run.
"""
