"""The values that travel between the layers: frozen, with tuples, without behaviour worth a test.

`exchange` is what a tape holds, `stream` what framing makes of a body, `reply` what a dialect
rebuilds from the events, `asked` what the request says, `finding` what a rule reports.
"""
